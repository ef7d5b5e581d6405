// Blocks of variables that XLA may free although it does not own them.
//
// TensorFlow lends XLA the buffers of the variables that a compiled function updates: it makes XLA
// a second owner of each (PopulateExecutionInputBuffer() in its xla_launch_util.cc) and takes that
// back only when the function has succeeded. If the function fails, mostly because memory ran out,
// XLA frees them while the variables still have them: the next tensors lie on top of the weights,
// and in the end every such block is freed twice. So a lent block is not freed before it comes
// back. Then its lender knows whether a variable still has it.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace thimble::tf {

class LentBlocks {
 public:
  using Span = absl::Span<const void* const>;

  void Lend(Span blocks) {
    absl::MutexLock lock(&mutex_);
    for (const void* const block : blocks) ++blocks_[block].loans;
    loans_.fetch_add(blocks.size(), std::memory_order_relaxed);
  }

  // To be asked before `block` is freed. True if it is lent: then it must stay, and the table
  // remembers the free.
  bool Keep(const void* block) {
    if (loans_.load(std::memory_order_relaxed) == 0) return false;
    absl::MutexLock lock(&mutex_);
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return false;
    found->second.was_freed = true;
    return true;
  }

  // The end of one loan. True if it was the last one and somebody has freed the block meanwhile.
  bool TakeBack(const void* block) {
    absl::MutexLock lock(&mutex_);
    loans_.fetch_sub(1, std::memory_order_relaxed);
    const auto found = blocks_.find(block);
    if (--found->second.loans > 0) return false;
    const bool was_freed = found->second.was_freed;
    blocks_.erase(found);
    return was_freed;
  }

 private:
  struct Lent {
    int loans = 0;
    bool was_freed = false;
  };

  std::atomic<std::size_t> loans_{0};
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, Lent> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thimble::tf
