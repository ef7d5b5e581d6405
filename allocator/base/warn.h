// Warns of a failure that is not an error of any call.
#pragma once

#include "absl/strings/string_view.h"

namespace thimble {

// Writes one line to standard error. `text` says what happened and how the program goes on.
void Warn(absl::string_view text);

}  // namespace thimble
