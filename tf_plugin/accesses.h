// Finds the blocks behind an op's inputs, outputs and variables, also those inside lists of
// tensors.
//
// A block is known by the address of a tensor's root buffer: slices and reshaped tensors share it.
// Blocks that no arena would move are omitted.
#pragma once

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"

namespace thimble::tf {

// Large enough that no op of a usual model allocates for it. A block may be in it twice.
using Blocks = absl::InlinedVector<const void*, 16>;

struct Accesses {
  Blocks blocks;            // those of tensors first, then those of variables
  std::size_t tensors = 0;  // how many of `blocks` belong to tensors
  // An input or output is opaque and may hold tensors: a resource that is not a variable, or a
  // variant that is not a list.
  bool opaque = false;
  bool references = false;  // a tensor came by reference

  absl::Span<const void* const> OfTensors() const {
    return absl::MakeConstSpan(blocks).first(tensors);
  }
  absl::Span<const void* const> OfVariables() const {
    return absl::MakeConstSpan(blocks).subspan(tensors);
  }
};

// What an op is about to use.
Accesses InputsOf(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context);

// What an op has made. This looks variables up again, because an assignment gives them another
// block.
Accesses ResultsOf(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context);

// The block of one tensor; null if it has none that could be moved.
const void* BlockOf(const tensorflow::Tensor& tensor);

using VariablePtr = tensorflow::core::RefCountPtr<tensorflow::Var>;

// The variable whose handle is input `index`; null if the input is not such a handle or the
// variable does not exist yet.
VariablePtr VariableOf(tensorflow::OpKernelContext* context, int index);

}  // namespace thimble::tf
