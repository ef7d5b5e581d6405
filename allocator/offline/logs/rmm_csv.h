// Reads the CSV that RMM's logging adaptor writes:
//
//   Thread,Time,Action,Pointer,Size,Stream
//   1234,10:11:12.131415,allocate,0x7f0000000000,1024,0x0
//   1234,10:11:12.131416,free,0x7f0000000000,1024,0x0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/event.h"

namespace thimble {

// True if the text begins with the header.
bool IsRmmCsv(absl::string_view text);

// Allocations and frees in the order of their lines, without times. Failed requests are left out.
// The error names the first wrong line (`name`:line).
absl::StatusOr<std::vector<Event>> ParseRmmCsv(absl::string_view text, absl::string_view name);

}  // namespace thimble
