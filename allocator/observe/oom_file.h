// The report about a request that failed, as a file beside the event log: for whoever reads the log
// afterwards, such as `thimble run`.
#pragma once

#include <cstdint>
#include <string>

#include "allocator/observe/oom_report.h"

namespace thimble {

// Beside the log of this path, as options have it; "%p" becomes the number of the process.
std::string OomPathFor(const std::string& log);

// One JSON object of numbers. The request failed right after the log's `mark`-th kMemory event.
std::string ToJson(const OomReport& report, std::uint64_t mark);

}  // namespace thimble
