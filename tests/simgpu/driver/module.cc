#include "tests/simgpu/driver/module.h"

#include <cstring>
#include <utility>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {
namespace {

// A variable of a module that cannot be read: nobody knows its size, but it costs nothing.
constexpr Bytes kUnknownSize = Bytes{64} << 20;

using Words = std::vector<std::uint64_t>;

// Every aligned 8-byte word could be a pointer, inside a structure too.
void AppendWords(const void* from, Bytes bytes, Words* words) {
  for (Bytes at = 0; at + 8 <= bytes; at += 8) {
    words->emplace_back();
    std::memcpy(&words->back(), static_cast<const char*>(from) + at, 8);
  }
}

Words ReadArguments(const Kernel& kernel, const Launch& launch) {
  Words words;
  if (launch.parameters != nullptr && kernel.is_known) {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      AppendWords(launch.parameters[i], kernel.parameters[i], &words);
    }
  }
  if (launch.extra == nullptr) return words;
  const void* buffer = nullptr;
  Bytes bytes = 0;
  for (void** entry = launch.extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = entry[1];
    if (*entry == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<std::size_t*>(entry[1]);
  }
  if (buffer != nullptr) AppendWords(buffer, bytes, &words);
  return words;
}

// Numbers are looked at only if they lie where device addresses are.
Outcome CheckArguments(const std::string& kernel, const Words& words, int device) {
  Memory& memory = Simulator::Get().memory;
  std::vector<Piece> ignored;
  for (const std::uint64_t word : words) {
    if (!memory.Contains(word)) continue;
    Outcome outcome = memory.Translate(word, 1, device, &ignored);
    if (outcome.ok()) continue;
    outcome.illegal = "kernel " + kernel + " gets " + outcome.illegal;
    return outcome;
  }
  return Success();
}

}  // namespace

CUmodule Modules::Load(const void* image) {
  auto module = std::make_shared<Module>();
  module->cubin = ReadCubin(image);
  const CUmodule handle = modules_.Add(module);
  module->handle = handle;
  return handle;
}

bool Modules::Unload(CUmodule handle) {
  const std::shared_ptr<Module> module = modules_.Remove(handle);
  if (module == nullptr) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, kernel] : module->kernels) kernels_.Remove(kernel);
  for (const auto& [name, address] : module->variables) {
    Simulator::Get().memory.Free(Kind::kGlobal, address, "cuModuleUnload", nullptr, nullptr);
  }
  return true;
}

CUfunction Modules::FindKernel(Module& module, const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = module.cubin.kernels.find(name);
  if (module.cubin.is_read && known == module.cubin.kernels.end()) return nullptr;
  CUfunction& handle = module.kernels[name];
  if (handle != nullptr) return handle;
  auto kernel = std::make_shared<Kernel>();
  kernel->name = name;
  kernel->is_known = module.cubin.is_read;
  kernel->module = module.handle;
  if (kernel->is_known) kernel->parameters = known->second;
  return handle = kernels_.Add(std::move(kernel));
}

Outcome Modules::FindVariable(Module& module, const std::string& name, Address* address,
                              Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  *bytes = kUnknownSize;
  if (module.cubin.is_read) {
    const auto known = module.cubin.variables.find(name);
    if (known == module.cubin.variables.end()) return Failure(CUDA_ERROR_NOT_FOUND);
    *bytes = std::max<Bytes>(known->second, 1);
  }
  Address& made = module.variables[name];
  if (made == 0) {
    Simulator& simulator = Simulator::Get();
    const std::shared_ptr<Context> context = simulator.contexts.Current();
    const int device = context == nullptr ? 0 : context->device;
    const Outcome outcome = simulator.memory.Allocate(Kind::kGlobal, device, *bytes, &made);
    if (!outcome.ok()) return outcome;
  }
  *address = made;
  return Success();
}

Outcome LaunchWork(const char* name, const Launch& launch, Work* work) {
  Simulator& simulator = Simulator::Get();
  const std::shared_ptr<Kernel> kernel = simulator.modules.Find(launch.function);
  if (kernel == nullptr) return Illegal(CUDA_ERROR_INVALID_HANDLE, "the kernel is not alive");
  const std::shared_ptr<Context> context = simulator.contexts.Current();
  const int device = context == nullptr ? 0 : context->device;
  const auto words = std::make_shared<const Words>(ReadArguments(*kernel, launch));
  work->type = CU_GRAPH_NODE_TYPE_KERNEL;
  work->name = name;
  work->check = [kernel, words, device] { return CheckArguments(kernel->name, *words, device); };
  work->run = [check = work->check] {
    Simulator::Get().results.Launched();
    return check();
  };
  return Success();
}

}  // namespace simgpu
