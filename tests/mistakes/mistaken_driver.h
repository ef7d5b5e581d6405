// A driver that does what a mistake in the code above it would do.
#pragma once

#include <functional>

#include "absl/container/flat_hash_map.h"
#include "tests/drivers/intercepting_driver.h"

namespace thimble {

enum class Mistake {
  kNone,
  kNoWait,            // what was to be waited for is used at once
  kOnlyFirstWait,     // of several streams, the first is waited for
  kEverythingPassed,  // nobody asks the device
  kFrontierTooEarly,  // the point before the right one
  kAnotherStream,     // the frontier of another stream
  kNoWaitForCopyOut,  // bytes are taken to be on the host before they are
  kNoWaitForCopyIn,   // and on the device
};

class MistakenDriver : public InterceptingDriver {
 public:
  using Copier = std::function<absl::Status(Address, void*, Bytes, CopyDirection)>;

  // `other` is a stream without work. `begin_copy` does not wait for the copy's end.
  MistakenDriver(Driver& base, Mistake mistake, StreamId other, Copier begin_copy)
      : InterceptingDriver(base),
        mistake_(mistake),
        other_(other),
        begin_copy_(std::move(begin_copy)) {}

  absl::StatusOr<StreamSeq> Record(StreamId stream) override {
    return InterceptingDriver::Record(Meant(stream));
  }

  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override {
    if (mistake_ == Mistake::kEverythingPassed || IsAwaited(stream, point)) return true;
    if (mistake_ == Mistake::kFrontierTooEarly && point.value() == 1) return true;
    return InterceptingDriver::Passed(Meant(stream), Meant(point));
  }

  absl::Status Wait(StreamId stream, StreamSeq point) override {
    const bool is_first = waits_++ == 0;
    if (mistake_ == Mistake::kNoWait || (mistake_ == Mistake::kOnlyFirstWait && !is_first)) {
      awaited_[stream] = point;
      return {};
    }
    if (mistake_ == Mistake::kEverythingPassed) return {};
    if (mistake_ == Mistake::kFrontierTooEarly && point.value() == 1) return {};
    return InterceptingDriver::Wait(Meant(stream), Meant(point));
  }

  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override {
    const bool is_mistaken = direction == CopyDirection::kToHost
                                 ? mistake_ == Mistake::kNoWaitForCopyOut
                                 : mistake_ == Mistake::kNoWaitForCopyIn;
    return is_mistaken ? begin_copy_(device, host, bytes, direction)
                       : InterceptingDriver::Copy(device, host, bytes, direction);
  }

 private:
  StreamId Meant(StreamId stream) const {
    return mistake_ == Mistake::kAnotherStream ? other_ : stream;
  }
  // As far as the code above knows.
  bool IsAwaited(StreamId stream, StreamSeq point) const {
    const auto found = awaited_.find(stream);
    return found != awaited_.end() && point <= found->second;
  }
  StreamSeq Meant(StreamSeq point) const {
    return mistake_ == Mistake::kFrontierTooEarly ? point - 1 : point;
  }

  const Mistake mistake_;
  const StreamId other_;
  const Copier begin_copy_;
  int waits_ = 0;
  absl::flat_hash_map<StreamId, StreamSeq> awaited_;
};

}  // namespace thimble
