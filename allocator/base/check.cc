#include "allocator/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace thimble {

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "thimble: broken invariant at %s:%d: %s\n", file, line, what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace thimble
