// libcudart.so.12: the kernels compiled into a program.
//
// A program registers its kernels before main(), when there may be no driver yet; so a module is
// loaded, once per context, when the first of its kernels is used. Launches are the driver's, whose
// log and checks then name the kernel.
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/simgpu/libraries/cudart.h"

namespace simgpu {
namespace {

// What nvcc hands to __cudaRegisterFatBinary.
struct FatBinary {
  int magic;
  int version;
  const void* image;
  void* file_name;
};

struct Kernel {
  const FatBinary* binary;
  std::string name;
};

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, Kernel> registered;
  std::map<std::pair<CUcontext, const FatBinary*>, CUmodule> modules;
  std::map<std::pair<CUcontext, const void*>, CUfunction> functions;
};

// Never destroyed: programs unregister kernels while the process ends, in any order.
Kernels& AllKernels() {
  static Kernels* const kernels = new Kernels;
  return *kernels;
}

// What `<<<...>>>` pushes and the kernel's host stub pops.
struct Configuration {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes;
  CUstream stream;
};
thread_local std::vector<Configuration> configurations;

// cudaLaunchConfig_t and cudaFuncAttributes of CUDA 12.
struct LaunchConfiguration {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes;
  CUstream stream;
  void* attributes;
  unsigned attribute_count;
};

struct FunctionAttributes {
  size_t shared_bytes;
  size_t constant_bytes;
  size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode;
  int max_dynamic_shared_bytes;
  int unused[24];
};
static_assert(sizeof(FunctionAttributes) == 144);

CUresult Launch(const void* host_function, const Configuration& how, void** arguments) {
  const CUresult result = EnterDevice();
  if (result != CUDA_SUCCESS) return result;
  const CUfunction function = FindKernel(host_function);
  if (!function) return CUDA_ERROR_INVALID_IMAGE;
  return SIMGPU_DRIVER(cuLaunchKernel)(
      function, how.grid.x, how.grid.y, how.grid.z, how.block.x, how.block.y, how.block.z,
      static_cast<unsigned>(how.shared_bytes), how.stream, arguments, nullptr);
}

}  // namespace

CUfunction FindKernel(const void* host_function) {
  CUcontext context = nullptr;
  SIMGPU_DRIVER(cuCtxGetCurrent)(&context);
  Kernels& kernels = AllKernels();
  std::lock_guard<std::mutex> lock(kernels.mutex);
  CUfunction& function = kernels.functions[{context, host_function}];
  if (function) return function;
  const auto found = kernels.registered.find(host_function);
  if (found == kernels.registered.end()) return nullptr;
  const Kernel& kernel = found->second;
  CUmodule& module = kernels.modules[{context, kernel.binary}];
  if (!module) SIMGPU_DRIVER(cuModuleLoadFatBinary)(&module, kernel.binary->image);
  if (module) SIMGPU_DRIVER(cuModuleGetFunction)(&function, module, kernel.name.c_str());
  return function;
}

}  // namespace simgpu

using simgpu::Finish;
using simgpu::RuntimeError;

SIMGPU_API void** __cudaRegisterFatBinary(simgpu::FatBinary* binary) {
  return reinterpret_cast<void**>(binary);  // the handle is the address: nothing else is needed
}

SIMGPU_API void __cudaRegisterFatBinaryEnd(void**) {}

SIMGPU_API void __cudaUnregisterFatBinary(void**) {}

SIMGPU_API char __cudaInitModule(void**) { return 1; }

SIMGPU_API void __cudaRegisterFunction(void** handle, const void* host_function, char*,
                                       const char* name, int, void*, void*, void*, void*, int*) {
  simgpu::Kernels& kernels = simgpu::AllKernels();
  std::lock_guard<std::mutex> lock(kernels.mutex);
  kernels.registered[host_function] = {reinterpret_cast<simgpu::FatBinary*>(handle), name};
}

SIMGPU_API unsigned __cudaPushCallConfiguration(simgpu::Dim3 grid, simgpu::Dim3 block,
                                                size_t shared_bytes, CUstream stream) {
  simgpu::configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

SIMGPU_API RuntimeError __cudaPopCallConfiguration(simgpu::Dim3* grid, simgpu::Dim3* block,
                                                   size_t* shared_bytes, CUstream* stream) {
  if (simgpu::configurations.empty()) return Finish(CUDA_ERROR_INVALID_VALUE);
  const simgpu::Configuration top = simgpu::configurations.back();
  simgpu::configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *stream = top.stream;
  return 0;
}

SIMGPU_API RuntimeError cudaLaunchKernel(const void* host_function, simgpu::Dim3 grid,
                                         simgpu::Dim3 block, void** arguments, size_t shared_bytes,
                                         CUstream stream) {
  return Finish(simgpu::Launch(host_function, {grid, block, shared_bytes, stream}, arguments));
}

SIMGPU_API RuntimeError cudaLaunchCooperativeKernel(const void* host_function, simgpu::Dim3 grid,
                                                    simgpu::Dim3 block, void** arguments,
                                                    size_t shared_bytes, CUstream stream) {
  return cudaLaunchKernel(host_function, grid, block, arguments, shared_bytes, stream);
}

SIMGPU_API RuntimeError cudaLaunchKernelExC(const simgpu::LaunchConfiguration* how,
                                            const void* host_function, void** arguments) {
  return cudaLaunchKernel(host_function, how->grid, how->block, arguments, how->shared_bytes,
                          how->stream);
}

SIMGPU_API RuntimeError cudaGetFuncBySymbol(CUfunction* function, const void* host_function) {
  const CUresult result = simgpu::EnterDevice();
  if (result != CUDA_SUCCESS) return Finish(result);
  *function = simgpu::FindKernel(host_function);
  return Finish(*function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE);
}

SIMGPU_API RuntimeError cudaFuncGetAttributes(simgpu::FunctionAttributes* attributes,
                                              const void* host_function) {
  std::memset(attributes, 0, sizeof *attributes);
  CUfunction function = nullptr;
  const RuntimeError error = cudaGetFuncBySymbol(&function, host_function);
  if (error) return error;
  const auto get = [function](CUfunction_attribute attribute) {
    int value = 0;
    SIMGPU_DRIVER(cuFuncGetAttribute)(&value, attribute, function);
    return value;
  };
  attributes->max_threads_per_block = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes->registers = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->ptx_version = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binary_version = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->max_dynamic_shared_bytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return 0;
}

SIMGPU_API RuntimeError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* host_function, int block_size, size_t shared_bytes, unsigned flags) {
  CUfunction function = nullptr;
  const RuntimeError error = cudaGetFuncBySymbol(&function, host_function);
  if (error) return error;
  return Finish(SIMGPU_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
      blocks, function, block_size, shared_bytes, flags));
}

SIMGPU_API RuntimeError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                      const void* host_function,
                                                                      int block_size,
                                                                      size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, block_size,
                                                                shared_bytes, 0);
}
