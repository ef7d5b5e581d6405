#include "tests/simgpu/driver/errors.h"

namespace simgpu {
namespace {

struct Entry {
  CUresult error;
  const char* name;
};

// Written by generate.py: SIMGPU_ERROR(CUDA_SUCCESS) and so on.
constexpr Entry kErrors[] = {
#define SIMGPU_ERROR(name) {name, #name},
#include "tests/simgpu/driver/error_names.inc"
#undef SIMGPU_ERROR
};

}  // namespace

const char* ErrorName(CUresult error) {
  for (const Entry& entry : kErrors) {
    if (entry.error == error) return entry.name;
  }
  return nullptr;
}

bool ErrorFromName(const std::string& name, CUresult* error) {
  for (const Entry& entry : kErrors) {
    if (name != entry.name) continue;
    *error = entry.error;
    return true;
  }
  return false;
}

}  // namespace simgpu
