// What the machine has.
#pragma once

#include "allocator/base/bytes.h"

namespace thimble {

// Half of its memory, in whole GiB: as much as may be taken without asking.
Bytes HalfOfTheMachine();

}  // namespace thimble
