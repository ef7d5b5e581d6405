// Opens race windows around another driver, in two ways:
//
//   - Chosen calls are delayed, before they reach the base and before they return, by a yield or a
//     short sleep. Which and how long follows from the seed and the number of the call, so a
//     schedule that found a bug can be tried again.
//   - A stream can be held: points recorded from then on are not passed until it is released, like
//     work on a GPU that has not finished. Points recorded before stay as they were.
//
// Wait on a held point blocks until the stream is released. So that a test that forgot to release
// fails instead of hanging, it gives up with kUnavailable after DelayOptions::fuse_ms.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "allocator/base/mutex.h"
#include "tests/drivers/driver_call.h"
#include "tests/drivers/intercepting_driver.h"

namespace thimble {

struct DelayOptions {
  std::uint64_t seed = 1;
  DriverCallSet calls = DriverCallSet::All();  // which are delayed
  std::uint32_t max_us = 50;                   // the longest sleep; 0: only yields
  std::uint32_t fuse_ms = 10'000;
};

class DelayDriver : public InterceptingDriver {
 public:
  // `base` must outlive this driver.
  explicit DelayDriver(Driver& base, const DelayOptions& options = {})
      : InterceptingDriver(base), options_(options) {}

  // Both may be called twice in a row: the second has no effect.
  void HoldStream(StreamId stream);
  void ReleaseStream(StreamId stream);

  std::uint64_t delays() const { return delays_.load(std::memory_order_relaxed); }

  absl::StatusOr<StreamSeq> Record(StreamId stream) override;
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override;
  absl::Status Wait(StreamId stream, StreamSeq point) override;

 private:
  struct Stream {
    StreamSeq recorded;  // the last point
    bool held = false;
    StreamSeq free_until;  // while held: the last point that is not held back
  };

  absl::Status Before(const Call& call) override;
  void After(const Call& call, const absl::Status& status) override;
  void Delay(DriverCall call);
  bool IsHeld(StreamId stream, StreamSeq point) const;

  const DelayOptions options_;
  std::atomic<std::uint64_t> delays_{0};
  mutable Mutex mutex_{LockRank::kDriver};
  std::condition_variable_any released_;
  absl::flat_hash_map<StreamId, Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thimble
