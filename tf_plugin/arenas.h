// The arenas behind TensorFlow's devices.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/thimble.h"
#include "tf_plugin/settings.h"

namespace thimble::tf {

// A failure of thimble.h with its text.
absl::Status ToStatus(thimble_status status);

// Most bytes the arena takes from its driver.
std::uint64_t LimitOf(thimble_arena* arena);

// Makes the arena of one device. It is never destroyed: TensorFlow's last frees come when the
// process ends, in any order. A limit in THIMBLE_CONF counts if it is lower than device.limit.
// Memory that cannot be had in advance is taken when it is needed, with a warning, as BFC does.
// kInvalidArgument: THIMBLE_CONF is wrong. kUnavailable: the device cannot be used this way.
absl::StatusOr<thimble_arena*> OpenArena(const Settings& settings, DeviceSettings device);

// Makes `arena` the one that FindArena(index) gives.
void PublishArena(int index, thimble_arena* arena);
thimble_arena* FindArena(int index);  // null: none

}  // namespace thimble::tf
