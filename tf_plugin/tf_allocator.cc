#include "tf_plugin/tf_allocator.h"

#include <utility>

#include "absl/log/log.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/oom_text.h"
#include "tsl/profiler/lib/scoped_memory_debug_annotation.h"

namespace thimble::tf {
namespace {

// The legacy default stream: TensorFlow submits nothing to it, so it is always idle, and an event
// on it is legal at any time.
constexpr std::uint64_t kIdleStream = 0;

// The core keeps no key for smaller blocks.
constexpr std::size_t kLargestWithoutKey = 4096;

// On a full device, requests for optional memory fail all the time.
constexpr int kMostOptionalReports = 10;

void RaiseTo(std::int64_t value, std::atomic<std::int64_t>* most) {
  std::int64_t seen = most->load(std::memory_order_relaxed);
  while (seen < value && !most->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

const tsl::profiler::MemoryDebugAnnotation& Current() {
  return tsl::profiler::ScopedMemoryDebugAnnotation::CurrentAnnotation();
}
absl::string_view CurrentOp() { return Current().pending_op_name; }

// Why the last request of this thread failed, until TakeReport() hands it over.
struct PendingReport {
  const tsl::Allocator* allocator = nullptr;  // null: no report
  std::string text;
};
thread_local PendingReport pending_report;

// Whether an op makes a new value of a variable, as AssignAddVariableOp and ResourceApplyAdam do.
// The memory that it requests, mostly in the first step, becomes that variable's. Nodes are named
// after their op unless the program names them; a wrong guess only costs a worse place.
bool UpdatesVariable(absl::string_view op) {
  const std::size_t slash = op.rfind('/');
  if (slash != absl::string_view::npos) op.remove_prefix(slash + 1);
  return absl::StartsWith(op, "Assign") || absl::StartsWith(op, "Resource");
}

}  // namespace

TfAllocator::TfAllocator(thimble_arena* arena, const Options& options)
    : arena_(arena), options_(options), limit_(LimitOf(arena)) {}

std::string TfAllocator::Name() {
  const std::string report = TakeReport();
  return report.empty() ? options_.name : absl::StrCat(options_.name, ": ", report);
}

std::string TfAllocator::TakeReport() {
  if (pending_report.allocator != this) return "";
  pending_report.allocator = nullptr;
  return std::exchange(pending_report.text, "");
}

void* TfAllocator::AllocateRaw(std::size_t alignment, std::size_t bytes) {
  return AllocateRaw(alignment, bytes, tsl::AllocationAttributes());
}

void* TfAllocator::AllocateRaw(std::size_t alignment, std::size_t bytes,
                               const tsl::AllocationAttributes& attributes) {
  if (bytes == 0) return nullptr;
  pending_report.allocator = nullptr;
  const bool has_key = bytes > kLargestWithoutKey;
  const std::uint64_t key = has_key ? KeyOf(CurrentOp()) : 0;
  const auto step = has_key ? static_cast<std::uint64_t>(Current().pending_step_id) : 0;
  const bool long_lived = has_key && UpdatesVariable(CurrentOp());
  const bool idle_only = options_.timestamped && attributes.freed_by_func != nullptr;
  const std::uint64_t stream = idle_only ? kIdleStream : stream_.load(std::memory_order_relaxed);
  thimble_status status = THIMBLE_OK;
  const auto try_allocate = [&] {
    void* block = nullptr;
    status =
        thimble_allocate_in_step(arena_, bytes, alignment, stream, key, step, long_lived, &block);
    return block;
  };
  void* block = try_allocate();
  if (status == THIMBLE_OUT_OF_MEMORY) {
    // No free helps a request above the limit.
    const bool may_wait =
        attributes.retry_on_failure && bytes <= limit_ && options_.retry > absl::ZeroDuration();
    const std::size_t vain = waited_in_vain_.load(std::memory_order_relaxed);
    const bool in_vain = may_wait && vain != 0 && bytes >= vain;
    if (may_wait && !in_vain) {
      block = freed_.TryUntil(options_.retry, try_allocate);
      if (block == nullptr) waited_in_vain_.store(bytes, std::memory_order_relaxed);
    }
    if (block == nullptr && attributes.retry_on_failure) ReportOom(bytes, in_vain);
    if (block == nullptr && !attributes.retry_on_failure) ReportOptional(bytes);
  } else if (block == nullptr) {
    pending_report = {this, thimble_last_error()};
    LOG(ERROR) << options_.name << " cannot allocate " << bytes
               << " bytes: " << pending_report.text;
  }
  if (block == nullptr) return nullptr;
  blocks_.Add(block, {bytes, next_id_.fetch_add(1, std::memory_order_relaxed)});
  Count(RoundUp(bytes));
  return block;
}

void TfAllocator::DeallocateRaw(void* block) {
  if (block == nullptr) return;
  // Remove it before the arena can give the address to another request.
  const std::optional<RequestedBlock> known = blocks_.Remove(block);
  const thimble_status status =
      thimble_free(arena_, block, stream_.load(std::memory_order_relaxed));
  if (status == THIMBLE_INVALID_ARGUMENT) {
    LOG(FATAL)
        << options_.name << " cannot free " << block << ": " << thimble_last_error()
        << ". A block that is freed twice may hold another tensor by now, so results can "
           "no longer be trusted. The process ends here, as with TensorFlow's own allocator.";
  }
  if (status != THIMBLE_OK) {
    LOG(ERROR) << options_.name << " cannot free " << block << ": " << thimble_last_error();
    if (known) blocks_.Add(block, *known);
    return;
  }
  if (known) {
    in_use_.fetch_sub(static_cast<std::int64_t>(RoundUp(known->bytes)), std::memory_order_relaxed);
  }
  if (waited_in_vain_.load(std::memory_order_relaxed) != 0) {
    waited_in_vain_.store(0, std::memory_order_relaxed);
  }
  freed_.Freed();
}

std::uint64_t TfAllocator::KeyOf(absl::string_view op) const {
  return thimble_remember(arena_, op.data(), op.size());
}

void TfAllocator::Count(std::size_t allocated) {
  const auto bytes = static_cast<std::int64_t>(allocated);
  allocations_.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes, &peak_in_use_);
  RaiseTo(bytes, &largest_);
}

void TfAllocator::ReportOom(std::size_t bytes, bool again) const {
  pending_report = {this, OomText(arena_, CurrentOp())};
  if (again) {
    LOG(WARNING) << options_.name << ": out of memory again: " << CurrentOp() << " asked for "
                 << bytes << " bytes, and nothing has been freed since the last report.";
  } else {
    LOG(WARNING) << options_.name << ": " << pending_report.text;
  }
}

void TfAllocator::ReportOptional(std::size_t bytes) const {
  static std::atomic<int> reports{0};
  if (reports.fetch_add(1, std::memory_order_relaxed) >= kMostOptionalReports) return;
  LOG(WARNING) << options_.name << ": no room for an optional workspace of " << bytes << " bytes; "
               << CurrentOp() << " may run slower.";
}

void TfAllocator::ReportNoRoomFor(absl::string_view op) const {
  LOG(WARNING) << options_.name << ": " << OomText(arena_, op);
}

std::size_t TfAllocator::RequestedSize(const void* block) const {
  const std::optional<RequestedBlock> known = blocks_.Find(block);
  return known ? known->bytes : 0;
}

std::size_t TfAllocator::AllocatedSize(const void* block) const {
  return RoundUp(RequestedSize(block));
}

std::int64_t TfAllocator::AllocationId(const void* block) const {
  const std::optional<RequestedBlock> known = blocks_.Find(block);
  return known ? known->id : 0;
}

std::optional<tsl::AllocatorStats> TfAllocator::GetStats() {
  thimble_stats arena = {};
  arena.struct_size = sizeof(arena);
  if (thimble_get_stats(arena_, &arena) != THIMBLE_OK) return std::nullopt;
  tsl::AllocatorStats stats;
  stats.num_allocs = allocations_.load(std::memory_order_relaxed);
  stats.bytes_in_use = in_use_.load(std::memory_order_relaxed);
  stats.peak_bytes_in_use = peak_in_use_.load(std::memory_order_relaxed);
  stats.largest_alloc_size = largest_.load(std::memory_order_relaxed);
  stats.bytes_limit = static_cast<std::int64_t>(arena.limit);
  stats.bytes_reserved = static_cast<std::int64_t>(arena.reserved);
  stats.peak_bytes_reserved = static_cast<std::int64_t>(arena.peak_reserved);
  stats.bytes_reservable_limit = static_cast<std::int64_t>(arena.limit);
  stats.largest_free_block_bytes = static_cast<std::int64_t>(arena.largest_free);
  stats.pool_bytes = stats.bytes_reserved;
  stats.peak_pool_bytes = stats.peak_bytes_reserved;
  return stats;
}

bool TfAllocator::ClearStats() {
  allocations_.store(0, std::memory_order_relaxed);
  peak_in_use_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  largest_.store(0, std::memory_order_relaxed);
  return thimble_reset_peaks(arena_) == THIMBLE_OK;
}

void TfAllocator::SetStreamAndPreallocateMemory(void* stream) {
  stream_.store(reinterpret_cast<std::uintptr_t>(stream), std::memory_order_relaxed);
}

}  // namespace thimble::tf
