// Which work is certainly over before which: vector clocks.
//
//   stream's clock   how much of each stream's work is over before the next work here begins
//   host's clock     how much of each stream's work the host knows to be over, because it waited or
//                    asked
//
// The host is one: its threads tell each other what they know. Whatever it submits begins after
// what it knows. Order comes from calls alone, and not from how fast anything was.
//
// Not thread-safe: Races holds its lock.
#pragma once

#include <memory>
#include <vector>

#include "tests/simgpu/driver/cells.h"

namespace simgpu {

// What is over at a point of a stream, by stream. Null: nothing.
using Moment = std::shared_ptr<const std::vector<Sequence>>;

class Order {
 public:
  int AddStream(int device);
  int DeviceOf(int stream) const { return streams_[static_cast<std::size_t>(stream)].device; }

  // The number of the next work on a stream, which now exists.
  Sequence Submit(int stream);
  Moment At(int stream) const;
  Moment AtAll(int device) const;  // of all streams of a device
  // Later work on `stream` begins after `moment`.
  void Join(int stream, const Moment& moment);

  // The host has learnt that something is over.
  void Learn(const Moment& moment);

  bool IsKnown(const Use& use) const { return Has(host_, use); }
  // Over before the work that was submitted last on `stream`.
  bool IsBefore(const Use& use, int stream) const {
    return Has(streams_[static_cast<std::size_t>(stream)].clock, use);
  }

 private:
  using Clock = std::vector<Sequence>;
  struct Stream {
    int device;
    Clock clock;
  };

  static bool Has(const Clock& clock, const Use& use) {
    const auto stream = static_cast<std::size_t>(use.stream);
    return stream < clock.size() && clock[stream] >= use.sequence;
  }
  static void JoinInto(Clock* clock, const Clock& other);

  Clock host_;
  std::vector<Stream> streams_;
};

}  // namespace simgpu
