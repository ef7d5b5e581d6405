// The CSV that RMM's logging adaptor writes, for whoever has recorded with that:
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

// Allocations and frees in the order of their lines, without times. The first line that is wrong is
// refused with its place (`name`:line). Requests that failed are left out.
absl::StatusOr<std::vector<Event>> ParseRmmCsv(absl::string_view text, absl::string_view name);

}  // namespace thimble
