// How the C interface answers: statuses become codes and a text per thread, no exception gets out,
// and structs of callers are filled as far as they reach.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/thimble.h"

namespace thimble {

// `text` is what thimble_last_error() says on this thread from now on.
thimble_status Fail(thimble_status code, absl::string_view text);
thimble_status FromStatus(const absl::Status& status);
// Its code alone.
thimble_status CodeOf(const absl::Status& status);
thimble_status NullArgument(const char* name);

// Runs `body`, which returns absl::Status. The only exceptions the library knows are the system's.
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
