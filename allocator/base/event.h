// What happens in an arena, as plain data: every layer can report, observe/ turns it into files.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

// The numbers are in files: a new kind goes to the end.
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
  // From here on since version 2 of the log.
  kLimit = 10,    // bytes: the most that may be reserved; address: of home; key: bytes of a chunk
  kMap = 11,      // there is memory at home: address, bytes; key: bytes of its chunks
  kUnmap = 12,    // and now there is none
  kAlias = 13,    // a run of an alias: address, bytes; key: where at home these bytes are
  kUnalias = 14,  // address, bytes: the window of an alias that is gone, all its runs
  kEvict = 15,    // address: a block that left the device; bytes: of it; stream: ns of the copy
  kFetch = 16,    // the same, and it is back; key: 1 if somebody waited for it
  // A plan came or went. bytes: its height, 0 if none serves; key: most bytes its requests held at
  // once; address: plans so far; stream: of these, dropped because they failed.
  kPlanned = 17,
  kName = 18,  // key: whose name the text is
  kOom = 19,   // bytes: that were not to be had; key: who asked; the text explains it
  kText = 20,  // a part of the text of the event before: in the file only
  // A place of the plan that came last: address, bytes; key: who asks; stream: the number of its
  // seat, which has no other place from now on.
  kSeat = 21,
  kLast = kSeat,
};

struct Event {
  EventKind kind = EventKind::kStep;
  Address address = 0;  // of the block; 0 where there is none
  Bytes bytes = 0;      // asked for; 0 for a free and a step
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint64_t time_ns = 0;  // since the log was started
};

// Where layers report what they do. Thread-safe.
class EventSink {
 public:
  // Whether anybody listens: all that reporting costs when nobody does.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // time_ns is filled in. Does nothing when off.
  virtual void Append(const Event& event) = 0;

 protected:
  EventSink() = default;
  ~EventSink() = default;

  std::atomic<bool> enabled_{false};
};

}  // namespace thimble
