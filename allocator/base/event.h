// Events of an arena as plain data. Every layer reports them; observe/ writes them to files.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

// events.def says what the fields mean in each kind.
enum class EventKind : std::uint8_t {
#define THIMBLE_EVENT(kind, name, number, address, bytes, stream, key) kind = (number),
#include "allocator/base/events.def"
  kLast = kPlace,
};

// A field without a meaning is 0.
struct Event {
  EventKind kind = EventKind::kStep;
  std::uint64_t address = 0;  // a number as in files: not every kind has an Address here
  Bytes bytes = 0;
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint64_t time_ns = 0;  // since the log was started
};

// Receives events. Thread-safe.
class EventSink {
 public:
  // Whether events are wanted. If not, this load is the whole cost of reporting.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Sets time_ns. Does nothing unless enabled().
  virtual void Append(const Event& event) = 0;

 protected:
  EventSink() = default;
  ~EventSink() = default;

  std::atomic<bool> enabled_{false};
};

}  // namespace thimble
