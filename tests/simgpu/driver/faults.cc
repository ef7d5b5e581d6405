#include "tests/simgpu/driver/faults.h"

#include <cstdlib>
#include <cstring>

#include "tests/simgpu/driver/errors.h"

namespace simgpu {
namespace {

bool ParseCount(const std::string& text, unsigned long* count) {
  char* end = nullptr;
  *count = std::strtoul(text.c_str(), &end, 10);
  return !text.empty() && text[0] != '-' && *end == '\0' && *count > 0;
}

bool ParseOne(std::string text, Fault* fault) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos) {
    if (!ErrorFromName(text.substr(equals + 1), &fault->code)) return false;
    text.resize(equals);
  }
  const std::size_t mark = text.find_first_of("@/");
  if (mark == std::string::npos || mark == 0) return false;
  fault->name = text.substr(0, mark);
  std::string count = text.substr(mark + 1);
  if (text[mark] == '/') return ParseCount(count, &fault->every);
  if (!count.empty() && count.back() == '+') {
    fault->sticky = true;
    count.pop_back();
  }
  return ParseCount(count, &fault->first);
}

bool IsDue(const Fault& fault, unsigned long call) {
  if (fault.every != 0) return call % fault.every == 0;
  return fault.sticky ? call >= fault.first : call == fault.first;
}

// Most calls can only run out of memory; launches and copies fail as on a broken device.
CUresult UsualError(const char* name) {
  const bool is_memory =
      std::strncmp(name, "cuMem", 5) == 0 && std::strstr(name, "Memcpy") == nullptr;
  return is_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
}

}  // namespace

bool ParseFaults(const std::string& text, std::vector<Fault>* faults) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    faults->emplace_back();
    if (!ParseOne(text.substr(begin, end - begin), &faults->back())) return false;
    begin = end + 1;
  }
  return true;
}

void Faults::Set(const std::string& text) {
  counters_.clear();
  std::vector<Fault> faults;
  if (text.empty() || !ParseFaults(text, &faults)) return;
  for (Fault& fault : faults) {
    counters_.push_back(std::make_unique<Counter>());
    counters_.back()->fault = std::move(fault);
  }
}

CUresult Faults::Next(const char* name) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& counter : counters_) {
    const Fault& fault = counter->fault;
    if (fault.name != "*" && fault.name != name) continue;
    if (!IsDue(fault, ++counter->calls) || result != CUDA_SUCCESS) continue;
    result = fault.code != CUDA_SUCCESS ? fault.code : UsualError(name);
  }
  return result;
}

}  // namespace simgpu
