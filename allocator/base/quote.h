// Text from outside in messages for people.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace thimble {

// What people see of a text that may be anything at all: in quotes, escaped, and cut if it is long.
std::string Quote(absl::string_view text);

}  // namespace thimble
