// What the user reads when memory runs out: the core's report, with the names of ops.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/thimble.h"

namespace thimble::tf {

// About the last request that failed. `op` is who asked; it may be empty.
std::string OomText(thimble_arena* arena, absl::string_view op);

}  // namespace thimble::tf
