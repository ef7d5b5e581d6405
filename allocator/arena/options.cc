#include "allocator/arena/options.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "allocator/base/machine.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

constexpr Bytes kSmallestChunk = 64 * kKiB;

absl::Status BadValue(absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(value), "' is not ", std::string(expected)));
}

// --- Kinds of values -----------------------------------------------------------------------------
// Each reads a value into a field, and writes it: "" where the default cannot be written.

std::string FormatNumber(std::uint64_t number) {
  return number == 0 ? std::string() : absl::StrCat(number);
}

struct Device {
  static absl::Status Parse(absl::string_view value, int* device) {
    if (value == "cpu") {
      *device = Options::kCpu;
      return absl::OkStatus();
    }
    if (absl::SimpleAtoi(value, device) && *device >= 0) return absl::OkStatus();
    return BadValue(value, "'cpu' or the number of a GPU");
  }
  static std::string Format(int device) {
    return device == Options::kCpu ? std::string("cpu") : absl::StrCat(device);
  }
};

// Joined by '+': the comma separates options.
struct Devices {
  static absl::Status Parse(absl::string_view value, std::vector<int>* ordinals) {
    for (const absl::string_view part : absl::StrSplit(value, '+')) {
      int ordinal = 0;
      if (!absl::SimpleAtoi(part, &ordinal) || ordinal < 0) {
        return BadValue(value, "numbers of GPUs, such as '1+2'");
      }
      ordinals->push_back(ordinal);
    }
    return absl::OkStatus();
  }
  static std::string Format(const std::vector<int>& ordinals) {
    return absl::StrJoin(ordinals, "+");
  }
};

struct Size {
  static absl::Status Parse(absl::string_view value, Bytes* bytes) {
    return ParseSize(value, bytes);
  }
  static std::string Format(Bytes bytes) { return FormatNumber(bytes); }
};

struct Chunk {
  static absl::Status Parse(absl::string_view value, Bytes* bytes) {
    THIMBLE_RETURN_IF_ERROR(ParseSize(value, bytes));
    if (IsPowerOfTwo(*bytes) && *bytes >= kSmallestChunk && *bytes <= kGiB) return absl::OkStatus();
    return BadValue(value, "a power of two from 64KiB to 1GiB");
  }
  static std::string Format(Bytes bytes) { return absl::StrCat(bytes); }
};

struct Switch {
  static absl::Status Parse(absl::string_view value, bool* on) {
    if (value != "on" && value != "off") return BadValue(value, "'on' or 'off'");
    *on = value == "on";
    return absl::OkStatus();
  }
  static std::string Format(bool on) { return on ? "on" : "off"; }
};

struct Auto {
  static absl::Status Parse(absl::string_view value, bool* on) {
    if (value != "auto" && value != "off") return BadValue(value, "'auto' or 'off'");
    *on = value == "auto";
    return absl::OkStatus();
  }
  static std::string Format(bool on) { return on ? "auto" : "off"; }
};

struct Swap {
  static absl::Status Parse(absl::string_view value, SwapMode* mode) {
    for (const SwapMode known : {SwapMode::kAuto, SwapMode::kWatch, SwapMode::kOff}) {
      *mode = known;
      if (value == Format(known)) return absl::OkStatus();
    }
    return BadValue(value, "'auto', 'watch' or 'off'");
  }
  static std::string Format(SwapMode mode) {
    if (mode == SwapMode::kOff) return "off";
    return mode == SwapMode::kAuto ? "auto" : "watch";
  }
};

// "5%" or "0.5", as parts per million.
struct Percent {
  static constexpr double kPpm = 10000;

  static absl::Status Parse(absl::string_view value, std::uint64_t* ppm) {
    constexpr double kMost = 1000;
    double percent = 0;
    if (!absl::SimpleAtod(absl::StripSuffix(value, "%"), &percent) ||
        !(percent >= 1 / kPpm && percent <= kMost)) {
      return BadValue(value, "a percentage above 0 and up to 1000, such as '5%'");
    }
    *ppm = static_cast<std::uint64_t>(std::llround(percent * kPpm));
    return absl::OkStatus();
  }
  static std::string Format(std::uint64_t ppm) {
    return ppm == 0 ? std::string() : absl::StrCat(static_cast<double>(ppm) / kPpm, "%");
  }
};

struct Milliseconds {
  static absl::Status Parse(absl::string_view value, std::chrono::milliseconds* time) {
    int milliseconds = 0;
    if (!absl::SimpleAtoi(value, &milliseconds) || milliseconds < 0 || milliseconds > 600000) {
      return BadValue(value, "a number of milliseconds from 0 to 600000");
    }
    *time = std::chrono::milliseconds(milliseconds);
    return absl::OkStatus();
  }
  static std::string Format(std::chrono::milliseconds time) {
    return FormatNumber(static_cast<std::uint64_t>(time.count()));
  }
};

struct Count {
  static absl::Status Parse(absl::string_view value, std::uint64_t* count) {
    if (absl::SimpleAtoi(value, count) && *count != 0) return absl::OkStatus();
    return BadValue(value, "a positive number of events; leave the option out for all");
  }
  static std::string Format(std::uint64_t count) { return FormatNumber(count); }
};

absl::Status ParsePath(absl::string_view value, absl::string_view what, std::string* path) {
  if (value.empty()) return BadValue(value, what);
  *path = std::string(value);
  return absl::OkStatus();
}

// That the arena writes.
struct File {
  static absl::Status Parse(absl::string_view value, std::string* path) {
    return ParsePath(value, "the path of a file", path);
  }
  static std::string Format(const std::string& path) { return path; }
};

struct Library {
  static absl::Status Parse(absl::string_view value, std::string* path) {
    return ParsePath(value, "the path of a CUDA driver library", path);
  }
  static std::string Format(const std::string& path) { return path; }
};

// --- Keys ----------------------------------------------------------------------------------------

struct OptionKey {
  const char* name;
  absl::Status (*parse)(absl::string_view value, Options* options);
  std::string (*format)(const Options& options);
  bool is_file;
};

constexpr OptionKey kKeys[] = {
#define THIMBLE_OPTION(key, kind, type, field, initial, row)                                      \
  {#key,                                                                                          \
   [](absl::string_view value, Options* options) { return kind::Parse(value, &options->field); }, \
   [](const Options& options) { return kind::Format(options.field); },                            \
   std::is_same_v<kind, File>},
#include "allocator/arena/options.def"
};

// Options that mean nothing without another one, and so say that it is wanted.
struct Implication {
  const char* key;
  const char* implied;
  const char* value;
};
constexpr Implication kImplications[] = {
    {"swap_limit", "swap", "auto"},
    {"swap_slowdown", "swap", "auto"},
};

const OptionKey* FindKey(absl::string_view name) {
  for (const OptionKey& key : kKeys) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

const OptionEntry* FindEntry(const std::vector<OptionEntry>& entries, absl::string_view key) {
  for (const OptionEntry& entry : entries) {
    if (key == entry.first) return &entry;
  }
  return nullptr;
}

// Adds an option to a text, unless its value is "".
void Append(absl::string_view key, absl::string_view value, std::string* text) {
  if (!value.empty()) absl::StrAppend(text, text->empty() ? "" : ",", key, ":", value);
}

std::vector<OptionEntry> Split(absl::string_view text) {
  std::vector<OptionEntry> entries;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    entries.emplace_back(absl::StripAsciiWhitespace(parts.first),
                         absl::StripAsciiWhitespace(parts.second));
  }
  return entries;
}

// A value of a front's own option; `values` are the valid ones, with '|' between.
absl::Status CheckOwn(absl::string_view value, absl::string_view values) {
  const std::vector<absl::string_view> valid = absl::StrSplit(values, '|');
  if (std::count(valid.begin(), valid.end(), value) > 0) return absl::OkStatus();
  return BadValue(value, absl::StrCat("'", absl::StrJoin(valid, "' or '"), "'"));
}

std::string ValidKeys(const std::vector<OptionEntry>& own) {
  std::vector<std::string> names;
  for (const OptionKey& key : kKeys) names.emplace_back(key.name);
  for (const auto& [name, values] : own) names.push_back(name);
  return absl::StrJoin(names, ", ");
}

// Blocks leave by whole chunks, so small ones let more of them leave. Host memory has no smallest
// chunk, and as long as there are not too many of them, they cost nothing there.
Bytes DefaultChunk(const Options& options) {
  constexpr Bytes kMostChunks = 16384;
  if (options.device != Options::kCpu || options.arena.swap == SwapMode::kOff) {
    return ArenaOptions().chunk_bytes;
  }
  Bytes limit = options.arena.limit;
  if (limit == 0) limit = options.memory != 0 ? options.memory : HalfOfTheMachine();
  Bytes chunk = kSmallestChunk;
  while (chunk < ArenaOptions().chunk_bytes && limit / chunk > kMostChunks) chunk *= 2;
  return chunk;
}

absl::Status CheckTogether(const Options& options) {
  if (options.device != Options::kCpu && options.memory != 0) {
    return absl::InvalidArgumentError(
        "'memory' sets the size of the cpu device, but the device is a GPU: use 'limit' instead");
  }
  if (options.device == Options::kCpu && !(options.driver.empty() && options.peers.empty())) {
    return absl::InvalidArgumentError(
        "'driver' and 'peers' are for GPUs, but the device is cpu: leave them out");
  }
  if (!options.arena.plan && !options.arena.plan_file.empty()) {
    return absl::InvalidArgumentError(
        "'plan_file' stores what plans have learned, but plan is off: add plan:auto");
  }
  if (options.arena.swap != SwapMode::kAuto &&
      (options.arena.host_limit != 0 || options.arena.swap_limit != 0 ||
       options.arena.swap_slowdown != 0)) {
    return absl::InvalidArgumentError(
        "'host_limit', 'swap_limit' and 'swap_slowdown' configure swapping, but swap is off: add "
        "swap:auto");
  }
  if (options.arena.swap_limit != 0 && options.arena.swap_slowdown != 0) {
    return absl::InvalidArgumentError(
        "'swap_limit' and 'swap_slowdown' both decide how much memory to use: give one of them");
  }
  if (options.arena.swap_limit != 0 && options.arena.swap_limit < options.arena.chunk_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "swap_limit:", options.arena.swap_limit, " is less than one chunk of ",
        options.arena.chunk_bytes, " bytes: give at least the memory of the largest op"));
  }
  if (options.arena.swap != SwapMode::kOff && options.arena.plan) {
    return absl::InvalidArgumentError(
        "swap:auto and swap:watch cannot be combined with plan:auto: leave one of them out");
  }
  if (std::count(options.peers.begin(), options.peers.end(), options.device) > 0) {
    return absl::InvalidArgumentError(absl::StrCat("peers:", absl::StrJoin(options.peers, "+"),
                                                   " names the device itself, ", options.device,
                                                   ": leave it out"));
  }
  if (options.memory != 0 && options.arena.limit > options.memory) {
    return absl::InvalidArgumentError(absl::StrCat("limit:", options.arena.limit,
                                                   " is more than memory:", options.memory,
                                                   ": lower the limit or leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseSize(absl::string_view value, Bytes* bytes) {
  THIMBLE_ASSIGN_OR_RETURN(const Bytes size, ParseBytes(value));
  if (size == 0) return BadValue(value, "a positive size; leave the option out for the default");
  *bytes = size;
  return absl::OkStatus();
}

std::vector<OptionEntry> OptionEntries(absl::string_view text) {
  std::vector<OptionEntry> entries = Split(text);
  for (const Implication& implication : kImplications) {
    if (FindEntry(entries, implication.key) && !FindEntry(entries, implication.implied)) {
      entries.emplace_back(implication.implied, implication.value);
    }
  }
  return entries;
}

absl::StatusOr<Options> ParseOptions(absl::string_view text, absl::string_view own) {
  const std::vector<OptionEntry> own_entries = Split(own);
  Options options;
  std::set<std::string> seen;
  for (const auto& [name, value] : OptionEntries(text)) {
    const OptionKey* const key = FindKey(name);
    const OptionEntry* const of_front = FindEntry(own_entries, name);
    if (key == nullptr && of_front == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", name, "': the options are ", ValidKeys(own_entries)));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("option '", name, "' is given twice"));
    }
    const absl::Status status =
        key != nullptr ? key->parse(value, &options) : CheckOwn(value, of_front->second);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("option '", name, "': ", std::string(status.message())));
    }
  }
  if (seen.count("chunk") == 0) options.arena.chunk_bytes = DefaultChunk(options);
  THIMBLE_RETURN_IF_ERROR(CheckTogether(options));
  return options;
}

absl::StatusOr<std::string> DeviceOptions(absl::string_view text, absl::string_view own,
                                          absl::string_view decided, unsigned index) {
  THIMBLE_RETURN_IF_ERROR(ParseOptions(text, own).status());
  std::vector<OptionEntry> entries = Split(decided);
  for (auto& [name, value] : Split(text)) {
    const OptionKey* const key = FindKey(name);
    if (key == nullptr || FindEntry(entries, name)) continue;  // the front's own, or decided
    if (key->is_file && index > 0) absl::StrAppend(&value, ".", index);
    entries.emplace_back(name, value);
  }
  std::string options;
  for (const auto& [name, value] : entries) Append(name, value, &options);
  return options;
}

std::string FormatOptions(const Options& options) {
  std::string text;
  for (const OptionKey& key : kKeys) Append(key.name, key.format(options), &text);
  return text;
}

}  // namespace thimble
