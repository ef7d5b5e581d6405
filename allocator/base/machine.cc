#include "allocator/base/machine.h"

#include <unistd.h>

namespace thimble {

Bytes HalfOfTheMachine() {
  const Bytes pages = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES));
  return RoundDown(pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE)) / 2, kGiB) + kGiB;
}

}  // namespace thimble
