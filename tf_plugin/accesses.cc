#include "tf_plugin/accesses.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/kernels/tensor_list.h"

namespace thimble::tf {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;

// Blocks below this size never leave: they would have to be rounded up to the smallest chunk an
// arena can have (option `chunk`), which would cost more than a quarter.
constexpr std::size_t kSmallest = (std::size_t{64} << 10) / 5 * 4;

constexpr int kDeepest = 4;  // deeper lists of lists are not searched

void Add(const Tensor& tensor, int depth, Accesses* accesses);

void AddVariant(const tensorflow::Variant& variant, int depth, Accesses* accesses) {
  if (variant.is_empty()) return;
  const bool may_look = depth <= kDeepest;
  const auto* const list = may_look ? variant.get<tensorflow::TensorList>() : nullptr;
  const auto* const tensor = may_look ? variant.get<Tensor>() : nullptr;
  if (list != nullptr) {
    for (const Tensor& element : list->tensors()) Add(element, depth, accesses);
  } else if (tensor != nullptr) {
    Add(*tensor, depth, accesses);
  } else {
    accesses->opaque = true;
  }
}

void Add(const Tensor& tensor, int depth, Accesses* accesses) {
  if (tensor.dtype() == tensorflow::DT_VARIANT) {
    if (!tensor.IsInitialized()) return;
    const auto variants = tensor.flat<tensorflow::Variant>();
    for (std::int64_t i = 0; i < variants.size(); ++i) {
      AddVariant(variants(i), depth + 1, accesses);
    }
  } else if (const void* const block = BlockOf(tensor)) {
    accesses->blocks.push_back(block);
  }
}

void AddReference(OpKernelContext* context, int index, Accesses* accesses) {
  const Tensor tensor = context->mutable_input(index, /*lock_held=*/false);
  // Names of queues and readers, for instance.
  if (!tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) accesses->opaque = true;
  if (const void* const block = BlockOf(tensor)) accesses->blocks.push_back(block);
  accesses->references = true;
}

// Null if the input is something else.
const tensorflow::ResourceHandle* VariableHandle(OpKernelContext* context, int index) {
  static const std::uint64_t kVariable = tensorflow::TypeIndex::Make<Var>().hash_code();
  const Tensor& handles = context->input(index);
  if (handles.NumElements() != 1) return nullptr;
  const auto& handle = handles.flat<tensorflow::ResourceHandle>()(0);
  return handle.hash_code() == kVariable ? &handle : nullptr;
}

enum class Lock { kWait, kIfFree };

void AddVariables(const OpKernel& kernel, OpKernelContext* context, Lock how, Accesses* accesses) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (kernel.input_type(i) != tensorflow::DT_RESOURCE || !context->has_input(i)) continue;
    if (const VariablePtr variable = VariableOf(context, i)) {
      auto& mutex = *variable->mu();
      if (how == Lock::kWait) {
        mutex.lock_shared();
      } else if (!mutex.try_lock_shared()) {
        continue;
      }
      Add(*variable->tensor(), /*depth=*/0, accesses);
      mutex.unlock_shared();
    } else if (VariableHandle(context, i) == nullptr) {
      accesses->opaque = true;
    }
  }
}

}  // namespace

const void* BlockOf(const Tensor& tensor) {
  // Strings, handles and variants must stay: nobody announces when their destructors run.
  if (!tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) return nullptr;
  auto* const buffer =
      const_cast<tensorflow::TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
  if (buffer == nullptr) return nullptr;
  const tensorflow::TensorBuffer* const root = buffer->root_buffer();
  return root->size() < kSmallest ? nullptr : root->data();
}

VariablePtr VariableOf(OpKernelContext* context, int index) {
  VariablePtr variable;
  const tensorflow::ResourceHandle* const handle = VariableHandle(context, index);
  if (handle == nullptr || !LookupResource(context, *handle, &variable).ok()) return nullptr;
  return variable;
}

Accesses InputsOf(const OpKernel& kernel, OpKernelContext* context) {
  Accesses accesses;
  bool resources = false;
  for (int i = 0; i < context->num_inputs(); ++i) {
    // Ask the kernel, not the context: the context has no type for the input that Merge is missing.
    const DataType type = kernel.input_type(i);
    if (!context->has_input(i)) continue;
    if (type == tensorflow::DT_RESOURCE) {
      resources = true;
    } else if (tensorflow::IsRefType(type)) {
      AddReference(context, i, &accesses);
    } else {
      Add(context->input(i), /*depth=*/0, &accesses);
    }
  }
  accesses.tensors = accesses.blocks.size();
  if (resources) AddVariables(kernel, context, Lock::kWait, &accesses);
  return accesses;
}

Accesses ResultsOf(const OpKernel& kernel, OpKernelContext* context) {
  Accesses accesses;
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (tensorflow::IsRefType(kernel.output_type(i))) continue;
    const Tensor* const tensor = context->mutable_output(i);  // null if it failed or is unused
    if (tensor != nullptr) Add(*tensor, /*depth=*/0, &accesses);
  }
  bool resources = false;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (kernel.input_type(i) == tensorflow::DT_RESOURCE) resources = true;
  }
  accesses.tensors = accesses.blocks.size();
  // An op may report that it is done while it still holds its variables, as XLA's ops do when they
  // fail. A variable that is skipped here stays until its next use.
  if (resources) AddVariables(kernel, context, Lock::kIfFree, &accesses);
  return accesses;
}

}  // namespace thimble::tf
