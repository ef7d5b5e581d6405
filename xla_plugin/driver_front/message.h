// Messages to the user. CUDA's calls return only numbers, so there is no other way to explain.
#pragma once

#include <string>

namespace thimble::xla {

// Writes "thimble: TEXT" to stderr, in one piece.
void Say(const std::string& text);

}  // namespace thimble::xla
