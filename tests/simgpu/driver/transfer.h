// Copies and fills, as work for a stream. Either end may be device memory, or host memory that the
// program or the driver owns.
#pragma once

#include "cuda.h"
#include "tests/simgpu/driver/range_map.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

// Rows of bytes: `width` of them at `begin`, and again every `pitch`, in slices of `height` rows.
struct Box {
  Address begin = 0;
  Bytes pitch = 0;
  Bytes slice = 0;  // bytes from one slice to the next
};

struct Extent {
  Bytes width = 0;
  Bytes height = 1;
  Bytes depth = 1;
};

Work CopyWork(const char* name, Address to, Address from, Bytes bytes);
Work CopyBoxWork(const char* name, const Box& to, const Box& from, const Extent& extent);

// CUDA's own description; arrays are not simulated.
Outcome DescribeCopy(const CUDA_MEMCPY3D& copy, Box* to, Box* from, Extent* extent);

// `count` elements of 1, 2 or 4 bytes per row.
struct Fill {
  Address begin = 0;
  Bytes pitch = 0;
  unsigned value = 0;
  Bytes element = 1;
  Bytes count = 0;
  Bytes rows = 1;
};
Work FillWork(const char* name, const Fill& fill);

// Starts a copy that may stay queued. Copies the source from the program's memory now, as a device
// does from memory that is not pinned.
Outcome StartCopy(const char* name, Address to, Address from, Bytes bytes, CUstream stream);

// One number in device or pinned memory.
Outcome ReadNumber(Address address, Bytes bytes, std::uint64_t* number);
Outcome WriteNumber(Address address, Bytes bytes, std::uint64_t number);

}  // namespace simgpu
