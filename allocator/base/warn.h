// Something went wrong that nobody asked for and that harms nothing.
#pragma once

#include "absl/strings/string_view.h"

namespace thimble {

// One line on standard error. `text` says what happened and what happens now.
void Warn(absl::string_view text);

}  // namespace thimble
