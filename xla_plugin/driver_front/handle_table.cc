#include "xla_plugin/driver_front/handle_table.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace thimble::xla {
namespace {

// Shared by all tables: what a thread found before the last removal may be stale.
std::atomic<std::uint64_t> version{0};

// What this thread found last. Plain data, so reading it needs no initialization guard.
struct Found {
  const HandleTable* table;
  const void* handle;
  std::uint64_t version;  // 0: nothing
  Owner owner;
};
constexpr int kFoundBits = 3;
thread_local std::array<Found, 1 << kFoundBits> found_last{};

Found& FoundAt(const void* handle) {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(handle) * 0x9E3779B97F4A7C15u;
  return found_last[mixed >> (64 - kFoundBits)];
}

}  // namespace

// A new table may have the address of an old one.
HandleTable::HandleTable() { ++version; }

std::optional<Owner> HandleTable::Find(const void* handle) const {
  const std::uint64_t now = version.load(std::memory_order_acquire);
  Found& found = FoundAt(handle);
  if (found.handle == handle && found.table == this && found.version == now) return found.owner;
  const std::shared_lock lock(mutex_);
  const auto it = owners_.find(handle);
  if (it == owners_.end()) return std::nullopt;
  found = {this, handle, now, it->second};
  return it->second;
}

void HandleTable::Add(const void* handle, const Owner& owner) {
  const std::unique_lock lock(mutex_);
  owners_.insert_or_assign(handle, owner);
}

std::optional<Owner> HandleTable::Remove(const void* handle) {
  const std::unique_lock lock(mutex_);
  const auto it = owners_.find(handle);
  if (it == owners_.end()) return std::nullopt;
  const Owner owner = it->second;
  owners_.erase(it);
  ++version;
  return owner;
}

std::vector<HandleTable::Entry> HandleTable::RemoveIf(
    const std::function<bool(const Owner&)>& condition) {
  std::vector<Entry> removed;
  const std::unique_lock lock(mutex_);
  removed.reserve(owners_.size());  // throws before anything changes
  for (auto it = owners_.begin(); it != owners_.end();) {
    if (condition(it->second)) {
      removed.push_back({it->first, it->second});
      it = owners_.erase(it);
    } else {
      ++it;
    }
  }
  if (!removed.empty()) ++version;
  return removed;
}

}  // namespace thimble::xla
