#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace thimble::bench {

// A JSON string literal of any text.
std::string JsonString(absl::string_view text);

}  // namespace thimble::bench
