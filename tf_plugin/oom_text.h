// What the user reads when memory runs out.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/thimble.h"
#include "tf_plugin/key_names.h"

namespace thimble::tf {

// One message: kind, what was asked for and by which op, what is free, who holds most, and what
// would make it fit. `op` may be empty.
std::string OomText(absl::string_view allocator, absl::string_view op, const thimble_oom& oom,
                    const KeyNames& names);

}  // namespace thimble::tf
