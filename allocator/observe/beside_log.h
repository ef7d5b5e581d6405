// Files beside an event log, for whoever looks at the run: `thimble run` and `thimble stats`.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/observe/oom_report.h"

namespace thimble {

inline constexpr absl::string_view kOomFile = ".oom";  // the last request that failed
inline constexpr absl::string_view kNowFile = ".now";  // the statistics of a moment ago

// False for a log that is no file, such as /dev/null.
bool HasFilesBeside(const std::string& log);

// For the log of this path, as options have it; "%p" becomes the number of the process.
std::string PathBeside(const std::string& log, absl::string_view file);

// One JSON object of numbers, with the bus that swap plans are made for by default.
std::string ToJson(const OomReport& report);

}  // namespace thimble
