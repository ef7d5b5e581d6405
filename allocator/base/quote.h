// Quotes text from outside for messages.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace thimble {

// `text` in quotes, escaped, and cut if it is long. It may hold any bytes.
std::string Quote(absl::string_view text);

}  // namespace thimble
