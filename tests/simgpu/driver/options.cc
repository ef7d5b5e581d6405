#include "tests/simgpu/driver/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "tests/simgpu/driver/faults.h"

namespace simgpu {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

bool ParseNumber(const std::string& text, long least, long most, int* number) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > most) return false;
  *number = static_cast<int>(value);
  return true;
}

// "1048576", "512KiB", "1.5GiB"
bool ParseSize(const std::string& text, Bytes* bytes) {
  static const std::map<std::string, double> kUnits = {
      {"", 1.0}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto unit = kUnits.find(end);
  if (text.empty() || text[0] < '0' || text[0] > '9' || unit == kUnits.end()) return false;
  const double product = value * unit->second;
  if (!(product < 0x1p46)) return false;  // more than a process can address
  *bytes = static_cast<Bytes>(std::llround(product));
  return true;
}

using Parse = std::function<bool(const std::string& value, Options* options)>;

Parse Size(Bytes Options::*member) {
  return [member](const std::string& value, Options* options) {
    return ParseSize(value, &(options->*member));
  };
}

Parse Switch(bool Options::*member) {
  return [member](const std::string& value, Options* options) {
    options->*member = value == "on";
    return value == "on" || value == "off";
  };
}

Parse Number(int Options::*member, int least, int most) {
  return [member, least, most](const std::string& value, Options* options) {
    return ParseNumber(value, least, most, &(options->*member));
  };
}

Parse Path(std::string Options::*member) {
  return [member](const std::string& value, Options* options) {
    options->*member = value;
    return !value.empty();
  };
}

bool ParseMemory(const std::string& value, Options* options) {
  options->memory.clear();
  for (const std::string& part : Split(value, ';')) {
    options->memory.push_back(0);
    if (!ParseSize(part, &options->memory.back())) return false;
  }
  return true;
}

bool ParseNames(const std::string& value, Options* options) {
  options->name = Split(value, ';');
  const auto fits = [](const std::string& name) { return !name.empty() && name.size() < 64; };
  return std::all_of(options->name.begin(), options->name.end(), fits);
}

bool ParseGranularity(const std::string& value, Options* options) {
  return ParseSize(value, &options->granularity) && options->granularity >= 4096;
}

bool ParseRaces(const std::string& value, Options* options) {
  options->races = value;
  return value == "on" || value == "off" || value == "auto";
}

bool ParseFault(const std::string& value, Options* options) {
  options->fault = value;
  std::vector<Fault> faults;
  return ParseFaults(value, &faults);
}

bool ParseDefectNames(const std::string& value, Options* options) {
  const std::vector<std::string> names = Split(value, ';');
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return options->defects.Add(name); });
}

struct Key {
  const char* expected;
  Parse parse;
};

const std::map<std::string, Key>& Keys() {
  static const std::string links = "a number from 0 to " + std::to_string(kMaxNvlinks);
  static const std::string devices = "a number from 0 to " + std::to_string(kMaxDevices);
  static const std::map<std::string, Key> keys = {
      {"gpus", {devices.c_str(), Number(&Options::gpus, 0, kMaxDevices)}},
      {"memory", {"a size, or sizes with ';' between", ParseMemory}},
      {"name", {"a name, or names with ';' between, below 64 letters", ParseNames}},
      {"reserve", {"a size", Size(&Options::reserve)}},
      {"granularity", {"a size, at least 4096", ParseGranularity}},
      {"capability",
       {"ten times the compute capability, as in 80", Number(&Options::capability, 50, 130)}},
      {"vmm", {"'on' or 'off'", Switch(&Options::vmm)}},
      {"pools", {"'on' or 'off'", Switch(&Options::pools)}},
      {"numa_chunks", {"'on' or 'off'", Switch(&Options::numa_chunks)}},
      {"host_chunks", {"'on' or 'off'", Switch(&Options::host_chunks)}},
      {"numa", {"a number from -1 to 63", Number(&Options::numa, -1, 63)}},
      {"nvlinks", {links.c_str(), Number(&Options::nvlinks, 0, kMaxNvlinks)}},
      {"peers", {"'on' or 'off'", Switch(&Options::peers)}},
      {"descriptors", {"'on' or 'off'", Switch(&Options::descriptors)}},
      {"copy", {"a size", Size(&Options::copy)}},
      {"results", {"a size", Size(&Options::results)}},
      {"truth", {"a number from 0 to 255", Number(&Options::truth, 0, 255)}},
      {"log", {"the path of a file", Path(&Options::log)}},
      {"illegal", {"the path of a file", Path(&Options::illegal)}},
      {"fault", {kFaultGrammar, ParseFault}},
      {"defects", {kDefectNames, ParseDefectNames}},
      {"summary", {"'on' or 'off'", Switch(&Options::summary)}},
      {"clock", {"a name or the path of a file", Path(&Options::clock)}},
      {"slow", {"a number from 1 to 1000", Number(&Options::slow, 1, 1000)}},
      {"races", {"'on', 'off' or 'auto'", ParseRaces}},
  };
  return keys;
}

// What two options together say, or need.
bool Combine(Options* options, std::string* error) {
  if (!options->has_clock()) {
    if (options->slow > 1) *error = "slow: needs a clock, such as clock:a100";
    return options->slow == 1;
  }
  if (FindProfile(options->clock, &options->profile, error)) return true;
  *error = "clock: " + *error;
  return false;
}

std::string ValidKeys() {
  std::string all;
  for (const auto& [name, key] : Keys()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

Bytes Options::MemoryOf(int device) const {
  return memory[std::min<std::size_t>(static_cast<std::size_t>(device), memory.size() - 1)];
}

const std::string& Options::NameOf(int device) const {
  return name[std::min<std::size_t>(static_cast<std::size_t>(device), name.size() - 1)];
}

bool ParseOptions(const std::string& text, Options* options, std::string* error) {
  *options = Options();
  if (text.empty()) return true;
  std::set<std::string> seen;
  for (const std::string& part : Split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      *error = "'" + part + "' is not key:value";
      return false;
    }
    const std::string name = part.substr(0, colon);
    const std::string value = part.substr(colon + 1);
    const auto key = Keys().find(name);
    if (key == Keys().end()) {
      *error = "unknown key '" + name + "'; valid are " + ValidKeys();
      return false;
    }
    if (!seen.insert(name).second) {
      *error = "'" + name + "' is given twice";
      return false;
    }
    if (!key->second.parse(value, options)) {
      *error = name + ": '" + value + "' is not " + key->second.expected;
      return false;
    }
  }
  return Combine(options, error);
}

}  // namespace simgpu
