// Modules, libraries, kernels and their launch. A library is a module, and a kernel of a library is
// the function of the module: their handles are the same numbers.
#include "tests/simgpu/driver/module.h"
#include "tests/simgpu/driver/simulator.h"

using simgpu::Address;
using simgpu::Bytes;
using simgpu::Call;
using simgpu::Kernel;
using simgpu::Launch;
using simgpu::Module;
using simgpu::Outcome;
using simgpu::Simulator;
using simgpu::ThreadsOf;
using simgpu::Work;

namespace {

CUmodule AsModule(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }
CUfunction AsFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

CUresult Load(const char* name, CUmodule* module, const void* image, bool is_of_program = false) {
  Call call(name, {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  *module = Simulator::Get().modules.Load(image, is_of_program);
  return call.result();
}

CUresult Unload(const char* name, CUmodule module) {
  Call call(name, {{"module", module}});
  if (!call.ok()) return call.result();
  if (Simulator::Get().modules.Unload(module)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the module is not alive");
}

std::shared_ptr<Module> FindModule(Call& call, CUmodule handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Module> module = Simulator::Get().modules.Find(handle);
  if (module == nullptr) call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the module is not alive");
  return module;
}

CUresult FindFunction(const char* name, CUfunction* function, CUmodule handle, const char* kernel) {
  Call call(name, {{"module", handle}});
  if (call.is_logged()) call.Note(kernel);
  const std::shared_ptr<Module> module = FindModule(call, handle);
  if (module == nullptr) return call.result();
  *function = Simulator::Get().modules.FindKernel(*module, kernel);
  return call.Return(*function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
}

CUresult FindVariable(const char* name, CUdeviceptr* pointer, std::size_t* bytes, CUmodule handle,
                      const char* variable) {
  Call call(name, {{"module", handle}});
  if (call.is_logged()) call.Note(variable);
  const std::shared_ptr<Module> module = FindModule(call, handle);
  if (module == nullptr) return call.result();
  Address address = 0;
  Bytes size = 0;
  const Outcome outcome = Simulator::Get().modules.FindVariable(*module, variable, &address, &size);
  if (!outcome.ok()) return call.Return(outcome);
  if (pointer != nullptr) *pointer = address;
  if (bytes != nullptr) *bytes = size;
  return call.result();
}

// Figures of a plausible small kernel.
int AttributeOf(CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return Simulator::Get().options.capability;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return 49152;
    default:
      return 0;
  }
}

std::shared_ptr<Kernel> FindKernel(Call& call, CUfunction function) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Kernel> kernel = Simulator::Get().modules.Find(function);
  if (kernel == nullptr) call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the kernel is not alive");
  return kernel;
}

CUresult Start(const char* name, const Launch& launch, CUstream stream) {
  Call call(name, {{"stream", stream}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Work work;
  const Outcome outcome = simgpu::LaunchWork(name, launch, &work);
  if (!outcome.ok()) return call.Return(outcome);
  if (call.is_logged()) call.Note(Simulator::Get().modules.Find(launch.function)->name);
  return call.Return(Simulator::Get().Start(stream, work));
}

CUresult Occupy(const char* name, int* blocks, CUfunction function) {
  Call call(name);
  if (FindKernel(call, function) == nullptr) return call.result();
  *blocks = 2;
  return call.result();
}

CUresult SuggestBlock(const char* name, int* least_grid, int* block, CUfunction function) {
  Call call(name);
  if (FindKernel(call, function) == nullptr) return call.result();
  *least_grid = 216;  // two per multiprocessor
  *block = 1024;
  return call.result();
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return Load("cuModuleLoadData", module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  // Programs print as much of these logs as the sizes say.
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
        options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      values[i] = nullptr;
    }
  }
  return Load("cuModuleLoadDataEx", module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return Load("cuModuleLoadFatBinary", module, image, /*is_of_program=*/true);
}

CUresult cuModuleUnload(CUmodule module) { return Unload("cuModuleUnload", module); }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return FindFunction("cuModuleGetFunction", function, module, name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module,
                              const char* name) {
  return FindVariable("cuModuleGetGlobal", pointer, bytes, module, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  Call call("cuModuleGetLoadingMode");
  if (!call.ok()) return call.result();
  *mode = CU_MODULE_LAZY_LOADING;
  return call.result();
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  return Load("cuLibraryLoadData", reinterpret_cast<CUmodule*>(library), image);
}

CUresult cuLibraryUnload(CUlibrary library) { return Unload("cuLibraryUnload", AsModule(library)); }

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return FindFunction("cuLibraryGetKernel", reinterpret_cast<CUfunction*>(kernel),
                      AsModule(library), name);
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  Call call("cuLibraryGetModule", {{"library", library}});
  if (FindModule(call, AsModule(library)) == nullptr) return call.result();
  *module = AsModule(library);
  return call.result();
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary library,
                            const char* name) {
  return FindVariable("cuLibraryGetGlobal", pointer, bytes, AsModule(library), name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  Call call("cuKernelGetFunction", {{"kernel", kernel}});
  if (FindKernel(call, AsFunction(kernel)) == nullptr) return call.result();
  *function = AsFunction(kernel);
  return call.result();
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  Call call("cuFuncGetModule", {{"function", function}});
  const std::shared_ptr<Kernel> kernel = FindKernel(call, function);
  if (kernel == nullptr) return call.result();
  *module = kernel->module;
  return call.result();
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  Call call("cuFuncGetName", {{"function", function}});
  const std::shared_ptr<Kernel> kernel = FindKernel(call, function);
  if (kernel == nullptr) return call.result();
  *name = kernel->name.c_str();
  return call.result();
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, AsFunction(kernel));
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  Call call("cuFuncGetAttribute", {{"attribute", attribute}, {"function", function}});
  if (FindKernel(call, function) == nullptr) return call.result();
  *value = AttributeOf(attribute);
  return call.result();
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice /*device*/) {
  return cuFuncGetAttribute(value, attribute, AsFunction(kernel));
}

// Hints for a kernel that does not run.
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Call call("cuFuncSetAttribute",
            {{"function", function}, {"attribute", attribute}, {"value", value}});
  FindKernel(call, function);
  return call.result();
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice /*device*/) {
  return cuFuncSetAttribute(AsFunction(kernel), attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  Call call("cuFuncSetCacheConfig", {{"function", function}, {"config", config}});
  FindKernel(call, function);
  return call.result();
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int, CUstream stream, void** parameters,
                        void** extra) {
  const double threads = ThreadsOf(grid_x, grid_y, grid_z, block_x, block_y, block_z);
  return Start("cuLaunchKernel", {function, threads, parameters, extra}, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  const double threads = ThreadsOf(config->gridDimX, config->gridDimY, config->gridDimZ,
                                   config->blockDimX, config->blockDimY, config->blockDimZ);
  return Start("cuLaunchKernelEx", {function, threads, parameters, extra}, config->hStream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int, CUstream stream,
                                   void** parameters) {
  const double threads = ThreadsOf(grid_x, grid_y, grid_z, block_x, block_y, block_z);
  return Start("cuLaunchCooperativeKernel", {function, threads, parameters, nullptr}, stream);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int,
                                                     std::size_t) {
  return Occupy("cuOccupancyMaxActiveBlocksPerMultiprocessor", blocks, function);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int,
                                                              std::size_t, unsigned int) {
  return Occupy("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", blocks, function);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* least_grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize, std::size_t, int) {
  return SuggestBlock("cuOccupancyMaxPotentialBlockSize", least_grid, block, function);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* least_grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize, std::size_t, int,
                                                   unsigned int) {
  return SuggestBlock("cuOccupancyMaxPotentialBlockSizeWithFlags", least_grid, block, function);
}

}  // extern "C"
