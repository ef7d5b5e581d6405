// Copies between host and device beside everything else: a stream of our own for each direction, as
// a GPU has a copy engine for each. They are made when the first copy needs them.
//
// Private to allocator/driver. Thread-safe; the lock is not held while a thread waits.
#pragma once

#include <array>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/mutex.h"
#include "allocator/driver/cuda_api.h"
#include "allocator/driver/driver.h"

namespace thimble {

class CudaCopyEngines {
 public:
  // `api` must outlive this object.
  CudaCopyEngines(const CudaApi& api, CUcontext context) : api_(api), context_(context) {}

  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction);

  // The last call on this object; the context is current. Not the destructor's work: it must not
  // happen when the driver is gone.
  void DestroyStreams();

 private:
  absl::StatusOr<CUstream> StreamFor(CopyDirection direction);

  const CudaApi& api_;
  const CUcontext context_;
  Mutex mutex_{LockRank::kDriver};
  std::array<CUstream, 2> streams_ ABSL_GUARDED_BY(mutex_) = {};  // by direction; null: not made
};

}  // namespace thimble
