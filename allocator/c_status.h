// Helpers of the C interface. They turn a status into a code and a text per thread, keep exceptions
// inside the library, and fill a caller's struct up to its size.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/thimble.h"

namespace thimble {

// Makes `text` the answer of thimble_last_error() on this thread.
thimble_status Fail(thimble_status code, absl::string_view text);
thimble_status FromStatus(const absl::Status& status);
// The code alone.
thimble_status CodeOf(const absl::Status& status);
thimble_status NullArgument(const char* name);

// Runs `body`, which returns absl::Status. Only the standard library throws exceptions.
template <typename Body>
thimble_status Guard(Body body) {
  try {
    return FromStatus(body());
  } catch (const std::bad_alloc&) {
    return Fail(THIMBLE_INTERNAL, "the host is out of memory");
  } catch (const std::exception& error) {
    return Fail(THIMBLE_INTERNAL, error.what());
  }
}

// Copies as much of `full` as the caller's struct has room for.
template <typename Struct>
absl::Status CopyOut(Struct full, Struct* out) {
  const std::size_t size = out->struct_size;
  if (size < sizeof(std::size_t)) {
    return absl::InvalidArgumentError("struct_size is not set: set it to sizeof before the call");
  }
  full.struct_size = size;
  std::memcpy(out, &full, std::min(size, sizeof(Struct)));
  return absl::OkStatus();
}

}  // namespace thimble
