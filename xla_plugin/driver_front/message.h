// What the front has to say to the user. There is nobody else to tell: CUDA's calls return numbers.
#pragma once

#include <string>

namespace thimble::xla {

// Writes "thimble: TEXT" to stderr, in one piece.
void Say(const std::string& text);

}  // namespace thimble::xla
