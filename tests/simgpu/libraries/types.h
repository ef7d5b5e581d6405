// What a product computes with, from the types that cuBLAS and cuBLASLt are given.
#pragma once

#include "tests/simgpu/driver/control.h"

namespace simgpu {

// `type` is a cudaDataType, `compute` a cublasComputeType_t.
inline int MathOf(int type, int compute) {
  constexpr int kFast16 = 74;
  constexpr int kFastBf16 = 75;
  constexpr int kFastTf32 = 77;
  switch (type) {
    case 1:  // double
    case 5:  // of complex numbers
      return simgpu_fp64;
    case 0:  // float
    case 4:
      if (compute == kFast16 || compute == kFastBf16) return simgpu_half;
      return compute == kFastTf32 ? simgpu_tf32 : simgpu_fp32;
    case 2:   // half
    case 14:  // bfloat16
      return simgpu_half;
    default:  // integers and floats of one byte
      return simgpu_byte;
  }
}

}  // namespace simgpu
