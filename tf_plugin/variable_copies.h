// Keeps the bytes of variables apart from the tensors that Python holds.
//
// TensorFlow lets a variable share its buffer with the tensors that Python assigned to it or read
// from it. Python may use those at any time, so that block would have to stay on the device: every
// weight is first assigned that way, and read that way for a checkpoint. So, with swapping, such an
// assignment or read is a copy. Within a function, buffers are shared as before. If there is no
// memory for a copy, the buffer is shared and stays.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_plugin/block_table.h"

namespace thimble::tf {

// To be called after ReadVariableOp in a function: remembers that the result shares the variable's
// buffer.
void AfterRead(tensorflow::OpKernelContext* context, BlockTable* blocks);
// To be called after ReadVariableOp outside of a function: makes its result a copy.
void AfterEagerRead(tensorflow::OpKernelContext* context);

// To be called after AssignVariableOp: if the assigned tensor is exposed, gives the variable a
// copy. Returns the copy's block, or null.
const void* AfterAssign(tensorflow::OpKernelContext* context, const BlockTable& blocks);

// Whether the result of a function is the buffer of a variable that is not exposed.
bool IsUnexposedVariable(const tensorflow::Tensor& result, const BlockTable& blocks);
// Replaces _Retval: returns a copy of its input to the caller of the function, and in `copy`. The
// input is pinned. False if nothing was done.
bool ReturnCopy(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context,
                tensorflow::Tensor* copy);

}  // namespace thimble::tf
