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

// The most bytes that the arena takes from its driver.
std::uint64_t LimitOf(thimble_arena* arena);

// Makes the arena of one device. It is never destroyed, because TensorFlow's last frees come at
// process exit, in any order. The lower of THIMBLE_CONF's limit and device.limit applies. If
// preallocation fails, the arena warns and grows as needed, as BFC does. kInvalidArgument:
// THIMBLE_CONF is wrong. kUnavailable: the device cannot be used this way.
absl::StatusOr<thimble_arena*> OpenArena(const Settings& settings, DeviceSettings device);

// Makes FindArena(index) return `arena`.
void PublishArena(int index, thimble_arena* arena);
thimble_arena* FindArena(int index);  // null: none

}  // namespace thimble::tf
