// Memory of the machine.
#pragma once

#include "allocator/base/bytes.h"

namespace thimble {

// Half of the machine's memory, in whole GiB: the default of options.
Bytes HalfOfTheMachine();

// How much can be taken before the machine, or the cgroup of this process, runs out.
Bytes AvailableMemory();

}  // namespace thimble
