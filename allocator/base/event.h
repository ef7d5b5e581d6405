// What happens in an arena, as plain data: every layer can report, observe/ turns it into files.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

// What each kind's fields say: events.def.
enum class EventKind : std::uint8_t {
#define THIMBLE_EVENT(kind, name, number, address, bytes, stream, key) kind = (number),
#include "allocator/base/events.def"
  kLast = kPlace,
};

// A field that says nothing is 0.
struct Event {
  EventKind kind = EventKind::kStep;
  std::uint64_t address = 0;  // a number as in files: not every kind has an Address here
  Bytes bytes = 0;
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
