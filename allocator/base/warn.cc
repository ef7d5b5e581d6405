#include "allocator/base/warn.h"

#include <cstdio>

namespace thimble {

void Warn(absl::string_view text) {
  std::fprintf(stderr, "thimble: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace thimble
