// Files beside an event log, which `thimble run` and `thimble stats` read.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/observe/oom_report.h"

namespace thimble {

inline constexpr absl::string_view kOomFile = ".oom";  // the last request that failed
inline constexpr absl::string_view kNowFile = ".now";  // recent statistics

// False if the log is not a regular file, such as /dev/null.
bool HasFilesBeside(const std::string& log);

// `log` is the path as options have it; "%p" becomes the number of the process.
std::string PathBeside(const std::string& log, absl::string_view file);

// One JSON object. Times assume the default bus of swap plans.
std::string ToJson(const OomReport& report);

}  // namespace thimble
