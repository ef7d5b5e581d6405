// Names for things that must not be mixed up. All are plain integers underneath.
#pragma once

#include <cstdint>

namespace thimble {

// An address as the device sees it (CUdeviceptr on CUDA, a real pointer on the host driver).
using Address = std::uint64_t;

// A queue of work: a CUstream as an integer on CUDA, any number on the host.
enum class StreamId : std::uint64_t {};

// A point in a stream's work, counted from 1 by Driver::Record. Later points are larger.
using StreamSeq = std::uint64_t;

// The driver's handle of a physical chunk.
enum class ChunkHandle : std::uint64_t {};

}  // namespace thimble
