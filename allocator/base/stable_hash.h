// A hash of bytes that is the same in every process and on every machine: for what is written to
// files. Not for defence: whoever wants two texts to have the same hash finds some.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace thimble {

std::uint64_t StableHash(absl::string_view text);

}  // namespace thimble
