// The frontier of each CUDA stream, as numbers. A recorded point is an event; when the event has
// happened the point is passed and the event is used again, so a program in its steady state makes
// none.
//
//   stream   points:  1 2 3 4 | 5 6 7          4 passed, 7 recorded
//                      passed  | pending: one event each, oldest first
//
// Invariants:
//   E1  Events of one stream happen in the order of their points: if point p is passed, so is every
//       earlier one. The lock is held from cuEventRecord until the point has its number.
//   E2  An event is free, or pending, or held by threads in Wait; it is free when none holds it.
//
// Private to allocator/driver. Thread-safe; the lock is not held while a thread waits.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/ids.h"
#include "allocator/base/mutex.h"
#include "allocator/driver/cuda_api.h"

namespace thimble {

class CudaStreams {
 public:
  // `api` must outlive this object.
  CudaStreams(const CudaApi& api, CUcontext context) : api_(api), context_(context) {}

  absl::StatusOr<StreamSeq> Record(StreamId stream);
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point);
  absl::Status Wait(StreamId stream, StreamSeq point);

  // The last call on this object; the context is current. Not the destructor's work: it must not
  // happen when the driver is gone.
  void DestroyEvents();

 private:
  struct Event {
    CUevent handle = nullptr;
    int holders = 0;  // its stream and the threads that wait for it (E2)
  };
  struct Stream {
    StreamSeq recorded;
    std::deque<Event*> pending;  // of the last points, oldest first

    StreamSeq passed() const { return recorded - pending.size(); }
    Event* EventOf(StreamSeq point) const { return pending[point - passed() - 1]; }
  };

  absl::StatusOr<Event*> TakeEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropEvent(Event* event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkPassed(Stream& stream, StreamSeq point) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the device about one pending point.
  absl::StatusOr<bool> Query(Stream& stream, StreamSeq point) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Synchronize(const Event& event) const;
  // The stream; kInvalidArgument if it has not come to `point`.
  absl::StatusOr<Stream*> Find(StreamId id, StreamSeq point) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CudaApi& api_;
  const CUcontext context_;
  Mutex mutex_{LockRank::kDriver};
  std::vector<std::unique_ptr<Event>> events_ ABSL_GUARDED_BY(mutex_);  // all
  std::vector<Event*> free_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<StreamId, Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thimble
