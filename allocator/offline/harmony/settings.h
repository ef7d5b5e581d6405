// Parses settings. A refusal quotes the value and says what to write instead.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/offline/harmony/report.h"

namespace thimble::harmony {

inline constexpr double kMostSearchSeconds = 3600;

// One setting: gpus (1 to 8), memory (10GiB, bytes), batch, mode (dp, pp, auto), rules (thimble,
// harmony), prefetch (on, off), packers (published, all, or names with +
// between), keep (on, off), resident (on, off), seconds, swap_limit (bytes, or off).
[[nodiscard]] absl::Status Set(absl::string_view key, absl::string_view value, Settings& settings);

absl::StatusOr<Settings> ReadSettings(
    const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace thimble::harmony
