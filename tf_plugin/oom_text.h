// The report that users read when memory runs out: the core's text, with the names of ops.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/thimble.h"

namespace thimble::tf {

// Describes the last request that failed. `op` made the request; it may be empty.
std::string OomText(thimble_arena* arena, absl::string_view op);

}  // namespace thimble::tf
