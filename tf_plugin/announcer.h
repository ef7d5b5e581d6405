// Tells an arena which blocks an op uses, so that the bytes of the others may leave the device
// (option `swap`).
//
// Around every op: its inputs and variables are pinned, it runs, they are unpinned and its results
// named. From then on they may leave until an op wants them again. What others than ops of this
// device may use is exposed instead, and stays. op_rules.h and accesses.h say what is what.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/thimble.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_plugin/accesses.h"
#include "tf_plugin/op_rules.h"
#include "tf_plugin/tf_allocator.h"

namespace thimble::tf {

// One per device. Thread-safe.
class Announcer {
 public:
  // `allocator` is that of the device, for what is said when memory runs out.
  Announcer(thimble_arena* arena, TfAllocator* allocator) : arena_(arena), allocator_(allocator) {}

  // In a child of a fork nothing moves any more, and there is nobody to tell.
  bool IsInChild() const { return thimble_is_in_child(arena_) != 0; }

  // Where ops are submitted to; before the first of them.
  void SetStream(std::uint64_t stream) { stream_ = stream; }

  using Span = absl::Span<const void* const>;

  // `op` names the user in what is said if memory runs out.
  absl::Status Pin(Span blocks, absl::string_view op, std::uint64_t step, unsigned flags) const;
  void Unpin(Span blocks, Span touched, unsigned flags) const;
  absl::Status Expose(Span blocks, absl::string_view op) const;

  // What TensorFlow does with the blocks of the device.
  BlockTable& blocks() const { return allocator_->blocks(); }

 private:
  absl::Status Failure(thimble_status status, absl::string_view op) const;

  thimble_arena* const arena_;
  TfAllocator* const allocator_;
  std::uint64_t stream_ = 0;
};

// One run of one op. End() must come before whoever waits for the op goes on.
class AnnouncedUse {
 public:
  AnnouncedUse(const Announcer* announcer, OpRule rule, tensorflow::OpKernel* kernel,
               tensorflow::OpKernelContext* context);
  ~AnnouncedUse() { End(); }
  AnnouncedUse(const AnnouncedUse&) = delete;
  AnnouncedUse& operator=(const AnnouncedUse&) = delete;

  // Whether an op needs one at all.
  static bool Needs(OpRule rule, const tensorflow::OpKernelContext& context) {
    return rule != OpRule::kForwards || IsEager(context);
  }

  // False: the op must not run. Memory is too short, and the context has the error, or all was
  // done.
  bool Begin();
  void End();

 private:
  using Span = Announcer::Span;

  // Python calls ops one by one, outside of any function.
  static bool IsEager(const tensorflow::OpKernelContext& context) {
    return context.call_frame() == nullptr;
  }
  bool IsCompiled() const;
  bool SharesVariable() const;
  bool PinInputs();
  bool ReturnedCopy();
  void AfterVariable();

  const Announcer* const announcer_;
  OpRule rule_;
  tensorflow::OpKernel* const kernel_;
  tensorflow::OpKernelContext* const context_;
  enum class State { kIdle, kShares, kPinned };

  State state_ = State::kIdle;
  Accesses inputs_;
  Span pinned_;
  bool exposes_ = false;  // its tensors
  unsigned flags_ = 0;
};

}  // namespace thimble::tf
