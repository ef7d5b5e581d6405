// What people say about a plan, in words. What is wrong is quoted, with what to write instead.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/harmony/report.h"

namespace thimble::harmony {

inline constexpr double kMostSearchSeconds = 3600;

// One setting: gpus (1 to 8), memory (10GiB, bytes), batch, mode (dp, pp, auto), rules (thimble,
// harmony), prefetch (on, off), packers (published, all, or names with +
// between), keep (on, off), resident (on, off), seconds, swap_limit (bytes, or off).
[[nodiscard]] absl::Status Set(absl::string_view key, absl::string_view value, Settings& settings);

// "gpus:2,memory:10GiB,batch:32": the same in the grammar of THIMBLE_CONF, every key at most once.
absl::StatusOr<Settings> ParseSettings(absl::string_view text);

}  // namespace thimble::harmony
