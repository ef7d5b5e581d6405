#include "tf_plugin/device_allocator.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/allocator.h"

namespace thimble::tf {
namespace {

thread_local Overdraft* overdraft = nullptr;  // the innermost of this thread

// Blocks from TensorFlow's own CPU allocator, for the devices of all arenas. A forked child may
// continue to use the table, because the thread that forks holds the mutex.
class OutsideBlocks {
 public:
  static OutsideBlocks& Get() {
    static OutsideBlocks* const blocks = new OutsideBlocks;
    return *blocks;
  }

  void* Allocate(std::size_t alignment, std::size_t bytes) {
    void* const block = tensorflow::cpu_allocator()->AllocateRaw(alignment, bytes);
    if (block == nullptr) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_.emplace(block, bytes);
    count_.store(sizes_.size(), std::memory_order_relaxed);
    return block;
  }

  // False if it is not one of them.
  bool Free(void* block) {
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (sizes_.erase(block) == 0) return false;
      count_.store(sizes_.size(), std::memory_order_relaxed);
    }
    tensorflow::cpu_allocator()->DeallocateRaw(block);
    return true;
  }

  std::optional<std::size_t> SizeOf(const void* block) {
    if (count_.load(std::memory_order_relaxed) == 0) return std::nullopt;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return std::nullopt;
    return found->second;
  }

 private:
  OutsideBlocks() {
    pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); },
                   [] { Get().mutex_.unlock(); });
  }

  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  absl::flat_hash_map<const void*, std::size_t> sizes_;
};

}  // namespace

Overdraft::Overdraft() : outer_(std::exchange(overdraft, this)) {}

Overdraft::~Overdraft() { overdraft = outer_; }

DeviceAllocator::DeviceAllocator(thimble_arena* arena, std::unique_ptr<tsl::Allocator> allocator)
    : AllocatorWrapper(allocator.get()),
      arena_(arena),
      owned_(std::move(allocator)),
      on_host_(owned_->GetMemoryType() == tsl::AllocatorMemoryType::kHostPageable) {}

void* DeviceAllocator::AllocateRaw(std::size_t alignment, std::size_t bytes) {
  return AllocateRaw(alignment, bytes, tsl::AllocationAttributes());
}

void* DeviceAllocator::AllocateRaw(std::size_t alignment, std::size_t bytes,
                                   const tsl::AllocationAttributes& attributes) {
  if (on_host_ && IsInChild()) return OutsideBlocks::Get().Allocate(alignment, bytes);
  void* const block = wrapped()->AllocateRaw(alignment, bytes, attributes);
  if (block != nullptr || bytes == 0 || !on_host_ || overdraft == nullptr) return block;
  if (overdraft->status_.ok()) {
    overdraft->status_ = absl::ResourceExhaustedError(
        absl::StrCat("OOM when allocating ", bytes, " bytes by allocator ", wrapped()->Name()));
  }
  return OutsideBlocks::Get().Allocate(alignment, bytes);
}

void DeviceAllocator::DeallocateRaw(void* block) {
  if (block == nullptr || OutsideBlocks::Get().Free(block) || IsInChild() || lent_.Keep(block))
    return;
  wrapped()->DeallocateRaw(block);
}

std::optional<std::size_t> DeviceAllocator::OutsideSize(const void* block) const {
  const std::optional<std::size_t> size = OutsideBlocks::Get().SizeOf(block);
  if (size || !IsInChild()) return size;
  return 0;  // only its parent knows
}

std::size_t DeviceAllocator::RequestedSize(const void* block) const {
  const std::optional<std::size_t> outside = OutsideSize(block);
  return outside ? *outside : wrapped()->RequestedSize(block);
}

std::size_t DeviceAllocator::AllocatedSize(const void* block) const {
  const std::optional<std::size_t> outside = OutsideSize(block);
  return outside ? *outside : wrapped()->AllocatedSize(block);
}

std::size_t DeviceAllocator::AllocatedSizeSlow(const void* block) const {
  const std::optional<std::size_t> outside = OutsideSize(block);
  return outside ? *outside : wrapped()->AllocatedSizeSlow(block);
}

std::int64_t DeviceAllocator::AllocationId(const void* block) const {
  return OutsideSize(block) ? 0 : wrapped()->AllocationId(block);
}

}  // namespace thimble::tf
