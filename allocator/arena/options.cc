#include "allocator/arena/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
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

// One line per option: its name, how its value is read, and how it is written.
struct OptionKey {
  const char* name;
  absl::Status (*parse)(absl::string_view value, Options* options);
  std::string (*format)(const Options& options);  // "" where the default cannot be written
};

absl::Status BadValue(absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(value), "' is not ", std::string(expected)));
}

absl::Status ParseSwitch(absl::string_view value, bool* on) {
  if (value != "on" && value != "off") return BadValue(value, "'on' or 'off'");
  *on = value == "on";
  return absl::OkStatus();
}

std::string FormatSwitch(bool on) { return on ? "on" : "off"; }

absl::Status ParseAuto(absl::string_view value, bool* on) {
  if (value != "auto" && value != "off") return BadValue(value, "'auto' or 'off'");
  *on = value == "auto";
  return absl::OkStatus();
}

std::string FormatAuto(bool on) { return on ? "auto" : "off"; }

// Joined by '+': the comma separates options.
absl::Status ParseOrdinals(absl::string_view value, std::vector<int>* ordinals) {
  for (const absl::string_view part : absl::StrSplit(value, '+')) {
    int ordinal = 0;
    if (!absl::SimpleAtoi(part, &ordinal) || ordinal < 0) {
      return BadValue(value, "numbers of GPUs, such as '1+2'");
    }
    ordinals->push_back(ordinal);
  }
  return absl::OkStatus();
}

std::string FormatNumber(std::uint64_t number) {
  return number == 0 ? std::string() : absl::StrCat(number);
}

constexpr double kPpmPerPercent = 10000;

// "5%" or "0.5", as parts per million.
absl::Status ParsePercent(absl::string_view value, std::uint64_t* ppm) {
  constexpr double kMost = 1000;
  double percent = 0;
  if (!absl::SimpleAtod(absl::StripSuffix(value, "%"), &percent) ||
      !(percent >= 1 / kPpmPerPercent && percent <= kMost)) {
    return BadValue(value, "a percentage above 0 and up to 1000, such as '5%'");
  }
  *ppm = static_cast<std::uint64_t>(std::llround(percent * kPpmPerPercent));
  return absl::OkStatus();
}

std::string FormatPercent(std::uint64_t ppm) {
  return ppm == 0 ? std::string() : absl::StrCat(static_cast<double>(ppm) / kPpmPerPercent, "%");
}

constexpr std::array<OptionKey, 18> kKeys = {{
    {"device",
     [](absl::string_view value, Options* options) {
       if (value == "cpu") {
         options->device = Options::kCpu;
         return absl::OkStatus();
       }
       if (!absl::SimpleAtoi(value, &options->device) || options->device < 0) {
         return BadValue(value, "'cpu' or the number of a GPU");
       }
       return absl::OkStatus();
     },
     [](const Options& options) {
       return options.device == Options::kCpu ? std::string("cpu") : absl::StrCat(options.device);
     }},
    {"memory",
     [](absl::string_view value, Options* options) { return ParseSize(value, &options->memory); },
     [](const Options& options) { return FormatNumber(options.memory); }},
    {"limit",
     [](absl::string_view value, Options* options) {
       return ParseSize(value, &options->arena.limit);
     },
     [](const Options& options) { return FormatNumber(options.arena.limit); }},
    {"preallocate",
     [](absl::string_view value, Options* options) {
       return ParseSwitch(value, &options->arena.preallocate);
     },
     [](const Options& options) { return FormatSwitch(options.arena.preallocate); }},
    {"chunk",
     [](absl::string_view value, Options* options) {
       THIMBLE_RETURN_IF_ERROR(ParseSize(value, &options->arena.chunk_bytes));
       if (!IsPowerOfTwo(options->arena.chunk_bytes) ||
           options->arena.chunk_bytes < kSmallestChunk || options->arena.chunk_bytes > kGiB) {
         return BadValue(value, "a power of two from 64KiB to 1GiB");
       }
       return absl::OkStatus();
     },
     [](const Options& options) { return absl::StrCat(options.arena.chunk_bytes); }},
    {"stitch",
     [](absl::string_view value, Options* options) {
       return ParseSwitch(value, &options->arena.stitch);
     },
     [](const Options& options) { return FormatSwitch(options.arena.stitch); }},
    {"plan",
     [](absl::string_view value, Options* options) {
       return ParseAuto(value, &options->arena.plan);
     },
     [](const Options& options) { return FormatAuto(options.arena.plan); }},
    {"plan_file",
     [](absl::string_view value, Options* options) {
       if (value.empty()) return BadValue(value, "the path of a file");
       options->arena.plan_file = std::string(value);
       return absl::OkStatus();
     },
     [](const Options& options) { return options.arena.plan_file; }},
    {"swap",
     [](absl::string_view value, Options* options) {
       options->arena.swap = value == "auto";
       options->arena.watch = value == "watch";
       if (options->arena.swap || options->arena.watch || value == "off") return absl::OkStatus();
       return BadValue(value, "'auto', 'watch' or 'off'");
     },
     [](const Options& options) {
       return options.arena.watch ? std::string("watch") : FormatAuto(options.arena.swap);
     }},
    {"swap_limit",
     [](absl::string_view value, Options* options) {
       return ParseSize(value, &options->arena.swap_limit);
     },
     [](const Options& options) { return FormatNumber(options.arena.swap_limit); }},
    {"swap_slowdown",
     [](absl::string_view value, Options* options) {
       return ParsePercent(value, &options->arena.swap_slowdown);
     },
     [](const Options& options) { return FormatPercent(options.arena.swap_slowdown); }},
    {"host_limit",
     [](absl::string_view value, Options* options) {
       return ParseSize(value, &options->arena.host_limit);
     },
     [](const Options& options) { return FormatNumber(options.arena.host_limit); }},
    {"retry_ms",
     [](absl::string_view value, Options* options) {
       int milliseconds = 0;
       if (!absl::SimpleAtoi(value, &milliseconds) || milliseconds < 0 || milliseconds > 600000) {
         return BadValue(value, "a number of milliseconds from 0 to 600000");
       }
       options->arena.retry = std::chrono::milliseconds(milliseconds);
       return absl::OkStatus();
     },
     [](const Options& options) {
       return FormatNumber(static_cast<std::uint64_t>(options.arena.retry.count()));
     }},
    {"log",
     [](absl::string_view value, Options* options) {
       if (value.empty()) return BadValue(value, "the path of a file");
       options->log = std::string(value);
       return absl::OkStatus();
     },
     [](const Options& options) { return options.log; }},
    {"log_events",
     [](absl::string_view value, Options* options) {
       if (!absl::SimpleAtoi(value, &options->log_events) || options->log_events == 0) {
         return BadValue(value, "a positive number of events; leave the option out for all");
       }
       return absl::OkStatus();
     },
     [](const Options& options) { return FormatNumber(options.log_events); }},
    {"nvtx",
     [](absl::string_view value, Options* options) { return ParseSwitch(value, &options->nvtx); },
     [](const Options& options) { return FormatSwitch(options.nvtx); }},
    {"driver",
     [](absl::string_view value, Options* options) {
       if (value.empty()) return BadValue(value, "the path of a CUDA driver library");
       options->driver = std::string(value);
       return absl::OkStatus();
     },
     [](const Options& options) { return options.driver; }},
    {"peers",
     [](absl::string_view value, Options* options) {
       return ParseOrdinals(value, &options->peers);
     },
     [](const Options& options) { return absl::StrJoin(options.peers, "+"); }},
}};

std::string ValidKeys() {
  return absl::StrJoin(
      kKeys, ", ", [](std::string* out, const OptionKey& key) { absl::StrAppend(out, key.name); });
}

const OptionKey* FindKey(absl::string_view name) {
  for (const OptionKey& key : kKeys) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

// Blocks leave by whole chunks, so small ones let more of them leave. Host memory has no smallest
// chunk, and as long as there are not too many of them, they cost nothing there.
Bytes DefaultChunk(const Options& options) {
  constexpr Bytes kMostChunks = 16384;
  const bool may_leave = options.arena.swap || options.arena.watch;
  if (options.device != Options::kCpu || !may_leave) return ArenaOptions().chunk_bytes;
  Bytes limit = options.arena.limit;
  if (limit == 0) limit = options.memory != 0 ? options.memory : HalfOfTheMachine();
  Bytes chunk = kSmallestChunk;
  while (chunk < ArenaOptions().chunk_bytes && limit / chunk > kMostChunks) chunk *= 2;
  return chunk;
}

absl::Status CheckTogether(const Options& options) {
  if (options.device != Options::kCpu && options.memory != 0) {
    return absl::InvalidArgumentError(
        "'memory' sets the size of the cpu device, but device is a GPU: use 'limit' there");
  }
  if (options.device == Options::kCpu && !(options.driver.empty() && options.peers.empty())) {
    return absl::InvalidArgumentError(
        "'driver' and 'peers' are for GPUs, but device is cpu: leave them out");
  }
  if (!options.arena.plan && !options.arena.plan_file.empty()) {
    return absl::InvalidArgumentError(
        "'plan_file' keeps what plans are made of, but plan is off: add plan:auto");
  }
  if (!options.arena.swap && (options.arena.host_limit != 0 || options.arena.swap_limit != 0 ||
                              options.arena.swap_slowdown != 0)) {
    return absl::InvalidArgumentError(
        "'host_limit', 'swap_limit' and 'swap_slowdown' are for what is swapped, but swap is off: "
        "say swap:auto");
  }
  if (options.arena.swap_limit != 0 && options.arena.swap_slowdown != 0) {
    return absl::InvalidArgumentError(
        "'swap_limit' says how much memory to use, 'swap_slowdown' looks for that: give one of "
        "them");
  }
  if (options.arena.swap_limit != 0 && options.arena.swap_limit < options.arena.chunk_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("swap_limit:", options.arena.swap_limit, " is less than one chunk of ",
                     options.arena.chunk_bytes, " bytes: give at least what the largest op uses"));
  }
  if ((options.arena.swap || options.arena.watch) && options.arena.plan) {
    return absl::InvalidArgumentError(
        "swap:auto and swap:watch do not go together with plan:auto yet: leave one of them out");
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

absl::StatusOr<Options> ParseOptions(absl::string_view text) {
  Options options;
  std::set<std::string> seen;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    const OptionKey* const key = FindKey(name);
    if (key == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", std::string(name), "': the options are ", ValidKeys()));
    }
    if (!seen.insert(key->name).second) {
      return absl::InvalidArgumentError(absl::StrCat("option '", key->name, "' is given twice"));
    }
    if (const absl::Status status = key->parse(value, &options); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("option '", key->name, "': ", std::string(status.message())));
    }
  }
  // Either of them says that swapping is wanted.
  if (seen.count("swap_limit") + seen.count("swap_slowdown") > 0 && seen.count("swap") == 0) {
    options.arena.swap = true;
  }
  if (seen.count("chunk") == 0) options.arena.chunk_bytes = DefaultChunk(options);
  THIMBLE_RETURN_IF_ERROR(CheckTogether(options));
  return options;
}

std::string FormatOptions(const Options& options) {
  std::string text;
  for (const OptionKey& key : kKeys) {
    const std::string value = key.format(options);
    if (value.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", key.name, ":", value);
  }
  return text;
}

}  // namespace thimble
