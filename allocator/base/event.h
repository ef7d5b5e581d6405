// What happens in an arena, as plain data: every layer can report, observe/ turns it into files.
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

enum class EventKind : std::uint8_t {
  kAllocate = 1,
  kFree = 2,
  kStep = 3,
  kMemory = 4,  // bytes: what is reserved now; key: how many blocks were stitched so far
  // So far, bytes: requests while a plan was in use; address: of these, at their planned place;
  // key: of these, at the same address as the time before.
  kPlan = 5,
  // So far, bytes: left the device; key: came back; address: are on the host now; stream:
  // nanoseconds that ops and requests waited for copies.
  kSwap = 6,
  kOp = 7,    // an op begins; key: which
  kUse = 8,   // address: a block that this op uses
  kCopy = 9,  // so far, nanoseconds that copies took: bytes: out; key: in
  kLast = kCopy,
};

struct Event {
  EventKind kind = EventKind::kStep;
  Address address = 0;  // of the block; 0 where there is none
  Bytes bytes = 0;      // asked for; 0 for a free and a step
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint64_t time_ns = 0;  // since the log was started
};

}  // namespace thimble
