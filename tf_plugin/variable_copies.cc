#include "tf_plugin/variable_copies.h"

#include <cstring>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_plugin/accesses.h"
#include "xla/stream_executor/stream.h"

namespace thimble::tf {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Copies in the order of the compute stream.
absl::Status CopyBytes(OpKernelContext* context, const Tensor& from, const Tensor& to) {
  const tensorflow::DeviceContext* const device = context->op_device_context();
  if (device == nullptr || device->stream() == nullptr) {
    std::memcpy(to.data(), from.data(), from.TotalBytes());
    return absl::OkStatus();
  }
  stream_executor::DeviceAddressBase target(to.data(), to.TotalBytes());
  const stream_executor::DeviceAddressBase source(from.data(), from.TotalBytes());
  return device->stream()->MemcpyD2D(&target, source, from.TotalBytes());
}

bool MakeCopy(OpKernelContext* context, const Tensor& tensor, Tensor* copy) {
  return context->allocate_temp(tensor.dtype(), tensor.shape(), copy).ok() &&
         CopyBytes(context, tensor, *copy).ok();
}

bool IsExposed(const Tensor& tensor, const BlockTable& blocks) {
  const void* const block = BlockOf(tensor);
  if (block == nullptr) return false;
  const std::optional<RequestedBlock> known = blocks.Find(block);
  return known && known->exposed;
}

}  // namespace

void AfterRead(OpKernelContext* context, BlockTable* blocks) {
  const Tensor* const value = context->mutable_output(0);
  const void* const block = value == nullptr ? nullptr : BlockOf(*value);
  if (block == nullptr) return;
  blocks->Update(block, [](RequestedBlock* known) { known->variable = true; });
}

void AfterEagerRead(OpKernelContext* context) {
  Tensor* const value = context->mutable_output(0);
  Tensor copy;
  if (value != nullptr && BlockOf(*value) != nullptr && MakeCopy(context, *value, &copy)) {
    *value = copy;
  }
}

const void* AfterAssign(OpKernelContext* context, const BlockTable& blocks) {
  const VariablePtr variable = VariableOf(context, /*index=*/0);
  if (variable == nullptr) return nullptr;
  tensorflow::mutex_lock lock(*variable->mu());
  Tensor* const value = variable->tensor();
  Tensor copy;
  if (!IsExposed(*value, blocks) || !MakeCopy(context, *value, &copy)) return nullptr;
  *value = copy;
  return BlockOf(*value);
}

bool IsUnexposedVariable(const Tensor& result, const BlockTable& blocks) {
  const void* const block = BlockOf(result);
  if (block == nullptr) return false;
  const std::optional<RequestedBlock> known = blocks.Find(block);
  return known && known->variable && !known->exposed;
}

bool ReturnCopy(const OpKernel& kernel, OpKernelContext* context, Tensor* copy) {
  int index = 0;
  return tensorflow::TryGetNodeAttr(kernel.def(), "index", &index) &&
         MakeCopy(context, context->input(0), copy) &&
         context->call_frame()->SetRetval(index, *copy).ok();
}

}  // namespace thimble::tf
