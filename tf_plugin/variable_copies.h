// Keeps the bytes of variables apart from the tensors that Python holds.
//
// TensorFlow lets a variable share its buffer with the tensors that Python assigned to it or read
// from it. Python may use those at any time, so that block would have to stay on the device: every
// weight is first assigned that way, and read that way for a checkpoint. So, with swapping, such an
// assignment or read is a copy. What stays within a function shares buffers as ever. Where there is
// no memory for a copy, the buffer is shared and stays.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_plugin/block_table.h"

namespace thimble::tf {

// After ReadVariableOp in a function, which shared the variable's buffer: remembers that.
void AfterRead(tensorflow::OpKernelContext* context, BlockTable* blocks);
// Outside of one: its result becomes a copy.
void AfterEagerRead(tensorflow::OpKernelContext* context);

// After AssignVariableOp: if the tensor is one that is exposed, the variable gets a copy of it. The
// block of that, or null.
const void* AfterAssign(tensorflow::OpKernelContext* context, const BlockTable& blocks);

// Whether the result of a function is the buffer of a variable, which nobody else has seen.
bool IsUnexposedVariable(const tensorflow::Tensor& result, const BlockTable& blocks);
// In the place of _Retval: returns a copy of its input to the caller of the function, and in
// `copy`. The input is pinned. False: nothing was done.
bool ReturnCopy(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context,
                tensorflow::Tensor* copy);

}  // namespace thimble::tf
