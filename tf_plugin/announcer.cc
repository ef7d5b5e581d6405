#include "tf_plugin/announcer.h"

#include <atomic>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/variable_copies.h"

namespace thimble::tf {
namespace {

// Whether the process has variables of TensorFlow 1, which ops get by reference. While an op runs
// with the buffer pinned, another op may give the variable a new buffer, so both stay. The only
// other references are to sums that TensorFlow 2 builds within a step, in place, term by term as
// they arrive.
std::atomic<bool> reference_variables{false};

}  // namespace

absl::Status Announcer::Failure(thimble_status status, absl::string_view op) const {
  const absl::Status failure = ToStatus(status);
  if (status == THIMBLE_OUT_OF_MEMORY) allocator_->ReportNoRoomFor(op);
  return absl::Status(failure.code(), absl::StrCat(failure.message(), " (tensors of ", op,
                                                   " by allocator ", allocator_->Name(), ")"));
}

absl::Status Announcer::Pin(Span blocks, absl::string_view op, std::uint64_t step,
                            unsigned flags) const {
  const thimble_status status =
      thimble_pin(arena_, blocks.data(), blocks.size(),
                  thimble_remember(arena_, op.data(), op.size()), step, flags);
  return status == THIMBLE_OK ? absl::OkStatus() : Failure(status, op);
}

void Announcer::Unpin(Span blocks, Span touched, unsigned flags) const {
  const thimble_status status = thimble_unpin(arena_, blocks.data(), blocks.size(), touched.data(),
                                              touched.size(), stream_, flags);
  // The blocks stay pinned, which is safe. The op itself succeeded, so it must not fail for this.
  if (status != THIMBLE_OK) LOG(ERROR) << "Thimble: " << thimble_last_error();
}

absl::Status Announcer::Expose(Span blocks, absl::string_view op) const {
  if (blocks.empty()) return absl::OkStatus();
  const thimble_status status = thimble_expose(arena_, blocks.data(), blocks.size());
  if (status != THIMBLE_OK) return Failure(status, op);
  for (const void* const block : blocks) {
    allocator_->blocks().Update(block, [](RequestedBlock* known) { known->exposed = true; });
  }
  return absl::OkStatus();
}

AnnouncedUse::AnnouncedUse(const Announcer* announcer, OpRule rule, tensorflow::OpKernel* kernel,
                           tensorflow::OpKernelContext* context)
    : announcer_(announcer), rule_(rule), kernel_(kernel), context_(context) {}

// Whether an op that reads or assigns a variable touches no byte of it.
bool AnnouncedUse::SharesVariable() const {
  if (rule_ != OpRule::kReadsVariable && rule_ != OpRule::kAssignsVariable) return false;
  if (IsEager(*context_)) return false;
  const VariablePtr variable = VariableOf(context_, /*index=*/0);
  return variable == nullptr || !variable->copy_on_read_mode.load();
}

// Whether XLA runs the function that this op calls. The type of such an op is that of any call, or
// the name of the function.
bool AnnouncedUse::IsCompiled() const {
  bool compiled = false;
  return tensorflow::TryGetNodeAttr(kernel_->def(), "_XlaMustCompile", &compiled) && compiled;
}

bool AnnouncedUse::Begin() {
  if (kernel_->AsAsync() != nullptr && IsCompiled()) rule_ = OpRule::kExposesVariables;
  if (rule_ == OpRule::kCalls && !IsEager(*context_)) return true;
  if (SharesVariable()) {
    state_ = State::kShares;
    return true;
  }
  if (rule_ == OpRule::kReturns && ReturnedCopy()) return false;
  return PinInputs();
}

bool AnnouncedUse::PinInputs() {
  if (rule_ == OpRule::kMakesReference) reference_variables.store(true, std::memory_order_relaxed);
  inputs_ = InputsOf(*kernel_, context_);
  const bool hides = rule_ == OpRule::kExposes || rule_ == OpRule::kExposesVariables ||
                     rule_ == OpRule::kReturns || inputs_.opaque ||
                     (inputs_.references && reference_variables.load(std::memory_order_relaxed));
  exposes_ = hides || IsEager(*context_);
  flags_ = hides || kernel_->AsAsync() != nullptr ? 0 : THIMBLE_OP_TAKES_TURN;
  pinned_ = exposes_ ? inputs_.OfVariables() : absl::MakeConstSpan(inputs_.blocks);
  const absl::string_view name = kernel_->name_view();
  absl::Status status;
  if (exposes_) status = announcer_->Expose(inputs_.OfTensors(), name);
  if (status.ok() && rule_ == OpRule::kExposesVariables) {
    status = announcer_->Expose(inputs_.OfVariables(), name);
  }
  if (status.ok()) {
    status =
        announcer_->Pin(pinned_, name, static_cast<std::uint64_t>(context_->step_id()), flags_);
  }
  if (!status.ok()) {
    context_->CtxFailure(status);
    return false;
  }
  state_ = State::kPinned;
  return true;
}

// Whether the result of the function was a variable's buffer, so that its caller got a copy.
bool AnnouncedUse::ReturnedCopy() {
  if (IsEager(*context_) || !context_->has_input(0)) return false;
  const tensorflow::Tensor& result = context_->input(0);
  if (!IsUnexposedVariable(result, announcer_->blocks())) return false;
  const void* const block = BlockOf(result);
  const absl::string_view name = kernel_->name_view();
  const auto step = static_cast<std::uint64_t>(context_->step_id());
  if (!announcer_->Pin({&block, 1}, name, step, /*flags=*/0).ok()) return false;
  tensorflow::Tensor copy;
  const bool returned = ReturnCopy(*kernel_, context_, &copy);
  announcer_->Unpin({&block, 1}, /*touched=*/{}, /*flags=*/0);
  if (!returned) return false;
  const void* const copied = BlockOf(copy);
  const absl::Status status = announcer_->Expose({&copied, 1}, name);
  if (!status.ok()) context_->CtxFailure(status);
  return true;
}

void AnnouncedUse::AfterVariable() {
  if (!context_->status().ok()) return;
  if (rule_ == OpRule::kAssignsVariable) {
    const void* const copied = AfterAssign(context_, announcer_->blocks());
    if (copied != nullptr) announcer_->Unpin(/*blocks=*/{}, {&copied, 1}, /*flags=*/0);
  } else if (rule_ != OpRule::kReadsVariable) {
    return;
  } else if (state_ == State::kShares) {
    AfterRead(context_, &announcer_->blocks());
  } else if (IsEager(*context_)) {
    AfterEagerRead(context_);
  }
}

void AnnouncedUse::End() {
  if (state_ == State::kIdle) return;
  AfterVariable();
  const bool pinned = state_ == State::kPinned;
  state_ = State::kIdle;
  if (!pinned) return;
  const Accesses results = ResultsOf(*kernel_, context_);
  const absl::string_view name = kernel_->name_view();
  absl::Status status;
  if (results.opaque && !exposes_) {  // an opaque result may keep the inputs
    status = announcer_->Expose(inputs_.OfTensors(), name);
    exposes_ = true;
  }
  if (status.ok() && exposes_) status = announcer_->Expose(results.OfTensors(), name);
  if (status.ok() && rule_ == OpRule::kExposesVariables) {
    status = announcer_->Expose(results.OfVariables(), name);
  }
  if (!status.ok()) context_->CtxFailure(status);
  announcer_->Unpin(pinned_, exposes_ ? results.OfVariables() : absl::MakeConstSpan(results.blocks),
                    flags_);
}

}  // namespace thimble::tf
