#include "tf_plugin/launch_guard.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace thimble::tf {
namespace {

// Like accesses.h, but for blocks of any size: XLA frees small ones as well.
const void* AddressOf(const tensorflow::Tensor& tensor) {
  return tensor.IsInitialized() ? tensorflow::DMAHelper::base(&tensor) : nullptr;
}

}  // namespace

bool LaunchGuard::IsLaunch(tensorflow::OpKernel* kernel) {
  const absl::string_view type = kernel->type_string_view();
  if (type == "_XlaRun") return true;
  if (kernel->AsAsync() == nullptr) return false;
  bool must_compile = false;
  return absl::StartsWith(type, "XlaLaunch") ||
         (tensorflow::TryGetNodeAttr(kernel->def(), "_XlaMustCompile", &must_compile) &&
          must_compile);
}

LaunchGuard::LaunchGuard(DeviceAllocator* allocator, const tensorflow::OpKernel& kernel,
                         tensorflow::OpKernelContext* context)
    : allocator_(allocator), context_(context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (kernel.input_type(i) != tensorflow::DT_RESOURCE || !context->has_input(i)) continue;
    VariablePtr variable = VariableOf(context, i);
    if (variable == nullptr) continue;
    {
      tensorflow::tf_shared_lock lock(*variable->mu());
      if (const void* const block = AddressOf(*variable->tensor())) lent_.push_back(block);
    }
    variables_.push_back(std::move(variable));
  }
  allocator_->lent().Lend(lent_);
}

// An op that failed still holds its variables, so nobody else changes them meanwhile.
bool LaunchGuard::IsVariables(const void* block) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
  return std::any_of(variables_.begin(), variables_.end(), [&](const VariablePtr& variable) {
    auto& mutex = *variable->mu();
    const bool locked = mutex.try_lock_shared();
    const bool is_its = AddressOf(*variable->tensor()) == block;
    if (locked) mutex.unlock_shared();
    return is_its;
  });
}

void LaunchGuard::End() {
  if (context_ == nullptr) return;
  Explain();
  context_ = nullptr;
  for (const void* const block : lent_) {
    if (allocator_->lent().TakeBack(block) && !IsVariables(block)) {
      allocator_->FreeReturned(const_cast<void*>(block));
    }
  }
}

// XLA does not ask for the allocator's name, which carries the out-of-memory report, so add it
// here. TensorFlow only exposes the status as const, and offers no other way to add to it.
void LaunchGuard::Explain() {
  if (!absl::IsResourceExhausted(context_->status())) return;
  auto& status = const_cast<absl::Status&>(context_->status());
  status = absl::ResourceExhaustedError(
      absl::StrCat(status.message(), " by allocator ", allocator_->Name()));
}

}  // namespace thimble::tf
