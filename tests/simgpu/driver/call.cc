#include "tests/simgpu/driver/call.h"

#include <cstdio>

#include "tests/simgpu/driver/errors.h"
#include "tests/simgpu/driver/simulator.h"

namespace simgpu {

std::string Hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Call::Call(const char* name, std::initializer_list<Argument> arguments, Needs needs) : name_(name) {
  Simulator& simulator = Simulator::Get();
  is_logged_ = simulator.log.is_read();
  if (is_logged_) {
    line_ = name;
    for (const Argument& one : arguments) {
      line_ += std::string(" ") + one.name + "=" +
               (one.value < (std::uint64_t{1} << 40) ? std::to_string(one.value) : Hex(one.value));
    }
  }
  result_ = simulator.faults.Next(name);
  if (!ok()) {
    if (is_logged_) Note("(injected)");
    return;
  }
  if (needs != Needs::kNothing && !simulator.is_initialized()) {
    result_ = CUDA_ERROR_NOT_INITIALIZED;
  } else if (needs == Needs::kContext && simulator.contexts.Current() == nullptr) {
    result_ = CUDA_ERROR_INVALID_CONTEXT;
  }
}

Call::~Call() {
  if (ok()) Simulator::Get().clock.Pay(microseconds_);
  if (!is_logged_) return;
  const char* const error = ErrorName(result_);
  if (!ok()) line_ += std::string(" = ") + (error != nullptr ? error : "unknown error");
  Simulator::Get().log.Write(line_);
}

CUresult Call::Return(const Outcome& outcome) {
  if (!outcome.illegal.empty()) {
    Simulator::Get().log.WriteIllegal(std::string(name_) + ": " + outcome.illegal);
  }
  return result_ = outcome.code;
}

}  // namespace simgpu
