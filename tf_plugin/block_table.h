// Records what TensorFlow asked for, by address: sizes and ids that the core does not keep.
// Thread-safe; threads rarely meet, because each part of the table has a lock of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace thimble::tf {

struct RequestedBlock {
  std::size_t bytes = 0;  // as requested
  std::int64_t id = 0;
  // Set only where devices announce what ops use (announcer.h).
  bool exposed = false;   // something other than an op may use it
  bool variable = false;  // its tensor was read from a variable
};

class BlockTable {
 public:
  void Add(const void* address, RequestedBlock block) {
    Part& part = PartOf(address);
    absl::MutexLock lock(&part.mutex);
    part.blocks.insert_or_assign(address, block);
  }

  // Removes the entry and returns it; nothing if there was none.
  std::optional<RequestedBlock> Remove(const void* address) {
    Part& part = PartOf(address);
    absl::MutexLock lock(&part.mutex);
    const auto found = part.blocks.find(address);
    if (found == part.blocks.end()) return std::nullopt;
    const RequestedBlock block = found->second;
    part.blocks.erase(found);
    return block;
  }

  // Calls change(&entry) if there is an entry.
  template <typename Change>
  void Update(const void* address, Change change) {
    Part& part = PartOf(address);
    absl::MutexLock lock(&part.mutex);
    const auto found = part.blocks.find(address);
    if (found != part.blocks.end()) change(&found->second);
  }

  std::optional<RequestedBlock> Find(const void* address) const {
    const Part& part = PartOf(address);
    absl::MutexLock lock(&part.mutex);
    const auto found = part.blocks.find(address);
    if (found == part.blocks.end()) return std::nullopt;
    return found->second;
  }

 private:
  static constexpr std::size_t kParts = 32;

  struct alignas(64) Part {
    mutable absl::Mutex mutex;
    absl::flat_hash_map<const void*, RequestedBlock> blocks ABSL_GUARDED_BY(mutex);
  };

  // Blocks begin at multiples of 256 B, large ones at much larger multiples; so mix in higher bits.
  static std::size_t IndexOf(const void* address) {
    const auto unit = reinterpret_cast<std::uintptr_t>(address) / 256;
    return (unit ^ unit / 4096) % kParts;
  }
  Part& PartOf(const void* address) { return parts_[IndexOf(address)]; }
  const Part& PartOf(const void* address) const { return parts_[IndexOf(address)]; }

  std::array<Part, kParts> parts_;
};

}  // namespace thimble::tf
