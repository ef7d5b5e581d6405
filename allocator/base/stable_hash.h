// A hash that is the same in every process and on every machine, for use in files. It does not
// resist attack: collisions are easy to construct.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace thimble {

std::uint64_t StableHash(absl::string_view text);

}  // namespace thimble
