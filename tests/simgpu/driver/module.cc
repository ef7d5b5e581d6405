#include "tests/simgpu/driver/module.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {
namespace {

// A variable of a module that cannot be read: nobody knows its size, but it costs nothing.
constexpr Bytes kUnknownSize = Bytes{64} << 20;

// Mostly floats.
constexpr double kElementBytes = 4;

// What can be seen of a launch's arguments.
struct Arguments {
  std::vector<std::uint64_t> pointers;
  double most = 0;          // the largest number that could count elements
  double tensor_bytes = 0;  // of all tensors that are described; 0: they are not
};

// Whether a word of a structure is a pointer. It may also be a small number and what a register
// held above it, or lie between two fields, where an earlier call has left something.
bool IsPointer(std::uint64_t word) {
  constexpr std::uint32_t kSmall = 1u << 24;
  return static_cast<std::uint32_t>(word) >= kSmall && Simulator::Get().memory.IsUsed(word);
}

// Each aligned 8 bytes could be a pointer.
void AppendPointers(const void* from, Bytes bytes, Arguments* arguments) {
  for (Bytes at = 0; at + 8 <= bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(from) + at, 8);
    const bool is_in_range = Simulator::Get().memory.Contains(word);
    if (is_in_range && (bytes == 8 || IsPointer(word))) arguments->pointers.push_back(word);
  }
}

// Above this, an int is probably a float's bits: those of 1e-28 and more.
void NoteCount(const void* from, Bytes bytes, Arguments* arguments) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
  if (bytes != 4 && bytes != 8) return;
  std::uint64_t number = 0;
  std::memcpy(&number, from, bytes);
  if (number <= kMost) arguments->most = std::max(arguments->most, static_cast<double>(number));
}

// Whether numbers begin with the description of a tensor of this rank: an offset, the sizes, the
// strides. A dimension along which the same element is read again has stride 0.
bool IsTensor(const std::uint64_t* numbers, std::size_t rank, double* elements) {
  *elements = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const auto size = static_cast<double>(numbers[1 + i]);
    const auto stride = static_cast<double>(numbers[1 + rank + i]);
    if (stride == 0 || size == 1) continue;
    if (stride != *elements) return false;
    *elements *= size;
  }
  return true;
}

// The elements of all tensors if the arguments describe them as MLIR does: a pointer twice, and
// numbers as above, perhaps with others behind them. Otherwise 0.
double CountDescribed(const std::vector<std::uint64_t>& words) {
  const Memory& memory = Simulator::Get().memory;
  double sum = 0;
  for (std::size_t at = 0; at < words.size();) {
    if (at + 2 >= words.size() || !memory.Contains(words[at]) || words[at + 1] != words[at]) {
      return 0;
    }
    std::size_t next = at + 2;
    while (next < words.size() && !memory.Contains(words[next])) ++next;
    const std::size_t count = next - at - 2;
    if (count == 0) return 0;
    double elements = 0;
    std::size_t rank = (count - 1) / 2;
    while (!IsTensor(&words[at + 2], rank, &elements)) --rank;  // rank 0 always is one
    sum += elements;
    at = next;
  }
  return sum;
}

Arguments ReadArguments(const Kernel& kernel, const Launch& launch) {
  Arguments arguments;
  if (launch.parameters != nullptr && kernel.is_known) {
    std::vector<std::uint64_t> words;
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      if (kernel.parameters[i] == 4 || kernel.parameters[i] == 8) {
        words.emplace_back();
        std::memcpy(&words.back(), launch.parameters[i], kernel.parameters[i]);
      }
      AppendPointers(launch.parameters[i], kernel.parameters[i], &arguments);
      NoteCount(launch.parameters[i], kernel.parameters[i], &arguments);
    }
    if (words.size() == kernel.parameters.size()) {
      arguments.tensor_bytes = kElementBytes * CountDescribed(words);
    }
  }
  if (launch.extra == nullptr) return arguments;
  const void* buffer = nullptr;
  Bytes bytes = 0;
  for (void** entry = launch.extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = entry[1];
    if (*entry == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<std::size_t*>(entry[1]);
  }
  if (buffer != nullptr) AppendPointers(buffer, bytes, &arguments);
  return arguments;
}

void Describe(const Kernel& kernel, const Launch& launch, const Arguments& arguments, int device,
              Work* work) {
  const std::set<std::uint64_t> pointers(arguments.pointers.begin(), arguments.pointers.end());
  for (const std::uint64_t pointer : pointers) work->operands.push_back({pointer, 0});
  work->title = "kernel " + kernel.name;
  const bool counts = kernel.is_of_program || arguments.most > 0;
  const double reach =
      counts ? kElementBytes * std::max(launch.threads, arguments.most) : 16 * launch.threads;
  work->demand.kind = Demand::Kind::kKernel;
  work->demand.device = device;
  work->demand.bytes = arguments.tensor_bytes > 0 ? arguments.tensor_bytes
                                                  : reach * static_cast<double>(pointers.size());
}

Outcome CheckArguments(const std::string& kernel, const std::vector<std::uint64_t>& pointers,
                       int device) {
  std::vector<Piece> ignored;
  for (const std::uint64_t pointer : pointers) {
    Outcome outcome = Simulator::Get().memory.Translate(pointer, 1, device, &ignored);
    if (outcome.ok()) continue;
    outcome.illegal = "kernel " + kernel + " gets " + outcome.illegal;
    return outcome;
  }
  return Success();
}

}  // namespace

CUmodule Modules::Load(const void* image, bool is_of_program) {
  auto module = std::make_shared<Module>();
  module->is_of_program = is_of_program;
  module->cubin = ReadCubin(image, Simulator::Get().options.capability);
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
  kernel->is_known = known != module.cubin.kernels.end();
  kernel->is_of_program = module.is_of_program;
  kernel->module = module.handle;
  if (kernel->is_known) kernel->parameters = known->second;
  return handle = kernels_.Add(std::move(kernel));
}

Outcome Modules::FindVariable(Module& module, const std::string& name, Address* address,
                              Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  *bytes = kUnknownSize;
  const auto known = module.cubin.variables.find(name);
  if (known != module.cubin.variables.end()) {
    *bytes = std::max<Bytes>(known->second, 1);
  } else if (module.cubin.is_read) {
    return Failure(CUDA_ERROR_NOT_FOUND);
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
  const auto arguments = std::make_shared<const Arguments>(ReadArguments(*kernel, launch));
  work->type = CU_GRAPH_NODE_TYPE_KERNEL;
  work->name = name;
  Describe(*kernel, launch, *arguments, device, work);
  simulator.launches.Count(kernel->is_known || launch.extra != nullptr);
  work->check = [kernel, arguments, device] {
    return CheckArguments(kernel->name, arguments->pointers, device);
  };
  work->run = [check = work->check] {
    Simulator::Get().results.Launched();
    return check();
  };
  return Success();
}

}  // namespace simgpu
