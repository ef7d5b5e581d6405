// Tells an arena which blocks an op uses, so that the bytes of the others may leave the device
// (option `swap`).
//
// Around every op, an announcer pins the inputs and variables, lets the op run, unpins them and
// names the results. From then on these blocks may leave until an op uses them again. Blocks that
// anyone but an op of this device may use are exposed instead, and stay. op_rules.h and accesses.h
// tell which are which.
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
  // `allocator` is the device's; its name and report go into out-of-memory errors.
  Announcer(thimble_arena* arena, TfAllocator* allocator) : arena_(arena), allocator_(allocator) {}

  // In a forked child nothing moves, so there is nothing to announce.
  bool IsInChild() const { return thimble_is_in_child(arena_) != 0; }

  // Sets the stream to which ops are submitted; to be called before the first op.
  void SetStream(std::uint64_t stream) { stream_ = stream; }

  using Span = absl::Span<const void* const>;

  // `op` appears in the error if memory runs out.
  absl::Status Pin(Span blocks, absl::string_view op, std::uint64_t step, unsigned flags) const;
  void Unpin(Span blocks, Span touched, unsigned flags) const;
  absl::Status Expose(Span blocks, absl::string_view op) const;

  // How TensorFlow uses the device's blocks.
  BlockTable& blocks() const { return allocator_->blocks(); }

 private:
  absl::Status Failure(thimble_status status, absl::string_view op) const;

  thimble_arena* const arena_;
  TfAllocator* const allocator_;
  std::uint64_t stream_ = 0;
};

// One run of one op. Call End() before anything that waits for the op continues.
class AnnouncedUse {
 public:
  AnnouncedUse(const Announcer* announcer, OpRule rule, tensorflow::OpKernel* kernel,
               tensorflow::OpKernelContext* context);
  ~AnnouncedUse() { End(); }
  AnnouncedUse(const AnnouncedUse&) = delete;
  AnnouncedUse& operator=(const AnnouncedUse&) = delete;

  // Whether an op needs a Use at all.
  static bool Needs(OpRule rule, const tensorflow::OpKernelContext& context) {
    return rule != OpRule::kForwards || IsEager(context);
  }

  // False: the op must not run. Either memory is too short, and the context has the error, or its
  // work is already done.
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
