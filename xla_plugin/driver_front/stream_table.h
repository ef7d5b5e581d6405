// Which streams the arena of one device knows by their handles.
//
// The arena asks the driver how far a stream has come, in the device's primary context. A stream
// that it cannot ask so (the per-thread default stream, which is another one on every thread, or a
// stream of another context) is foreign: the front waits for it instead.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

class StreamTable {
 public:
  // `primary` is the device's primary context.
  explicit StreamTable(CUcontext primary) : primary_(primary) {}

  // The number of `stream` for the arena; nothing if it is foreign.
  std::optional<std::uint64_t> NumberOf(CUstream stream);

  // Whether the stream was known; it is not any more.
  bool Forget(CUstream stream);

 private:
  const CUcontext primary_;
  std::shared_mutex mutex_;
  std::unordered_map<CUstream, bool> ours_;  // false: foreign
};

}  // namespace thimble::xla
