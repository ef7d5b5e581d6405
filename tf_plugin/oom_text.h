// What the user reads when memory runs out.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/thimble.h"

namespace thimble::tf {

// One message: kind, what was asked for and by which op, what is free, who holds most, and what
// would make it fit. `op` may be empty; `arena` knows the names of the holders.
std::string OomText(absl::string_view allocator, absl::string_view op, const thimble_oom& oom,
                    const thimble_arena* arena);

}  // namespace thimble::tf
