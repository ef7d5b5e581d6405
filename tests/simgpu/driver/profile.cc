#include "tests/simgpu/driver/profile.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/simgpu/driver/gpus.h"

namespace simgpu {
namespace {

constexpr double kTera = 1e12;

enum class Least { kPositive, kZero, kShare };  // kShare: more than 0, at most 1

struct Field {
  double Profile::*member;
  Least least = Least::kPositive;
};

const std::map<std::string, Field>& Fields() {
  static const std::map<std::string, Field> fields = {
      {"fp64_tflops", {&Profile::fp64_tflops}},
      {"fp32_tflops", {&Profile::fp32_tflops}},
      {"tf32_tflops", {&Profile::tf32_tflops, Least::kZero}},
      {"half_tflops", {&Profile::half_tflops, Least::kZero}},
      {"byte_tflops", {&Profile::byte_tflops, Least::kZero}},
      {"simd_efficiency", {&Profile::simd_efficiency, Least::kShare}},
      {"tensor_efficiency", {&Profile::tensor_efficiency, Least::kShare}},
      {"memory_gbps", {&Profile::memory_gbps}},
      {"memory_efficiency", {&Profile::memory_efficiency, Least::kShare}},
      {"bus_in_gbps", {&Profile::bus_in_gbps}},
      {"bus_in_us", {&Profile::bus_in_us, Least::kZero}},
      {"bus_out_gbps", {&Profile::bus_out_gbps}},
      {"bus_out_us", {&Profile::bus_out_us, Least::kZero}},
      {"pageable_gbps", {&Profile::pageable_gbps}},
      {"nvlink_gbps", {&Profile::nvlink_gbps, Least::kZero}},
      {"launch_us", {&Profile::launch_us, Least::kZero}},
      {"reserve_us", {&Profile::reserve_us, Least::kZero}},
      {"create_us", {&Profile::create_us, Least::kZero}},
      {"map_us", {&Profile::map_us, Least::kZero}},
      {"set_access_us", {&Profile::set_access_us, Least::kZero}},
      {"unmap_us", {&Profile::unmap_us, Least::kZero}},
      {"alloc_us", {&Profile::alloc_us, Least::kZero}},
      {"alloc_us_per_mib", {&Profile::alloc_us_per_mib, Least::kZero}},
      {"free_us", {&Profile::free_us, Least::kZero}},
  };
  return fields;
}

const char* Expected(Least least) {
  switch (least) {
    case Least::kPositive:
      return "a number above 0";
    case Least::kZero:
      return "a number from 0 on";
    case Least::kShare:
      return "a number above 0 and at most 1";
  }
  return "";
}

bool ParseValue(const std::string& text, Least least, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(*value)) return false;
  if (*value < 0 || (*value == 0 && least != Least::kZero)) return false;
  return least != Least::kShare || *value <= 1;
}

std::string FieldNames() {
  std::string all;
  for (const auto& [name, field] : Fields()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// One line that is not empty. Returns what is wrong with it, or "".
std::string ParseLine(const std::string& line, std::set<std::string>* seen, Profile* profile) {
  std::istringstream words(line);
  std::string name;
  std::string value;
  std::string more;
  words >> name >> value >> more;
  const auto field = Fields().find(name);
  if (field == Fields().end()) return "unknown field '" + name + "'; valid are " + FieldNames();
  if (!seen->insert(name).second) return "'" + name + "' is given twice";
  const std::string& wrong = more.empty() ? value : more;
  if (!more.empty() || !ParseValue(value, field->second.least, &(profile->*field->second.member))) {
    return name + ": '" + wrong + "' is not " + Expected(field->second.least);
  }
  return "";
}

}  // namespace

double Profile::TensorPeak(Math math) const {
  const double tflops = math == Math::kTf32   ? tf32_tflops
                        : math == Math::kHalf ? half_tflops
                        : math == Math::kByte ? byte_tflops
                                              : 0;
  return tflops * tensor_efficiency * kTera;
}

double Profile::SimdPeak(Math math) const {
  return (math == Math::kFp64 ? fp64_tflops : fp32_tflops) * simd_efficiency * kTera;
}

bool ParseProfile(const std::string& text, const std::string& source, Profile* profile,
                  std::string* error) {
  *profile = Profile();
  std::set<std::string> seen;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string wrong = ParseLine(line, &seen, profile);
    if (wrong.empty()) continue;
    *error = source + ":" + std::to_string(number) + ": " + wrong;
    return false;
  }
  for (const auto& [name, field] : Fields()) {
    if (seen.count(name) != 0) continue;
    *error = source + ": the field '" + name + "' is missing: add the line '" + name + " VALUE'";
    return false;
  }
  return true;
}

bool FindProfile(const std::string& name_or_path, Profile* profile, std::string* error) {
  std::string names;
  for (const BuiltInGpu& gpu : kBuiltInGpus) {
    if (name_or_path == gpu.name) {
      return ParseProfile(std::string(gpu.profile) + kDriverPrices, gpu.name, profile, error);
    }
    names += std::string(gpu.name) + ", ";
  }
  std::ifstream file(name_or_path);
  if (!file) {
    *error =
        "'" + name_or_path + "' is not off, " + names + "or the path of a file that can be read";
    return false;
  }
  std::ostringstream text;
  text << file.rdbuf();
  return ParseProfile(text.str(), name_or_path, profile, error);
}

}  // namespace simgpu
