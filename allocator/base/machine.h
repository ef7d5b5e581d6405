// What the machine has.
#pragma once

#include "allocator/base/bytes.h"

namespace thimble {

// Half of its memory, in whole GiB: as much as may be taken without asking.
Bytes HalfOfTheMachine();

// What can be taken now without the machine, or the group of processes we are in, running out.
Bytes AvailableMemory();

}  // namespace thimble
