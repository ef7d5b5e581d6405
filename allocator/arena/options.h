// What a user can choose, as one string: "key:value,key:value", the grammar of THIMBLE_CONF. This
// is its only parser: fronts and Python ask it through thimble.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/bytes.h"

namespace thimble {

enum class SwapMode {
  kOff,
  kWatch,  // idle blocks stay, but who uses them is known: for OomReport
  kAuto,   // idle blocks leave the device when memory is short
};

// What the fields mean is in options.def.
struct ArenaOptions {
#define THIMBLE_OPTION(key, kind, type, field, initial, row)
#define THIMBLE_ARENA_OPTION(key, kind, type, field, initial, row) type field = initial;
#include "allocator/arena/options.def"
  bool magazines = true;  // let threads keep small blocks: no option, for tests
};

struct Options {
  static constexpr int kCpu = -1;
#define THIMBLE_OPTION(key, kind, type, field, initial, row) type field = initial;
#define THIMBLE_ARENA_OPTION(key, kind, type, field, initial, row)
#include "allocator/arena/options.def"
  ArenaOptions arena;
};

// A size as options give it: as ParseBytes(), but not zero.
absl::Status ParseSize(absl::string_view value, Bytes* bytes);

// One "key:value".
using OptionEntry = std::pair<std::string, std::string>;

// What a text says, in its order, and then what that implies: swap_limit means swap:auto. Nothing
// is judged; a key without a value has "".
std::vector<OptionEntry> OptionEntries(absl::string_view text);

// Every key at most once; unknown keys, bad values and contradictions are refused with a message
// that names them and the valid choices. Empty text means all defaults. `own` are options that only
// a front knows, with their values: "front:thimble|bfc". They are checked, and mean nothing here.
absl::StatusOr<Options> ParseOptions(absl::string_view text, absl::string_view own = "");

// The text that `text`, for a front with options of its `own`, means on its device number `index`.
// What is in `decided` counts more; what has no value there is left out. Two devices never write
// one file: all but the first have their number at the end of its path.
absl::StatusOr<std::string> DeviceOptions(absl::string_view text, absl::string_view own,
                                          absl::string_view decided, unsigned index);

// All options with their values, in the same grammar.
std::string FormatOptions(const Options& options);

}  // namespace thimble
