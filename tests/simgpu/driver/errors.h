// CUresult values by name, from cuda.h itself.
#pragma once

#include <string>

#include "cuda.h"

namespace simgpu {

// "CUDA_ERROR_INVALID_VALUE"; null if there is no such error.
const char* ErrorName(CUresult error);
bool ErrorFromName(const std::string& name, CUresult* error);

}  // namespace simgpu
