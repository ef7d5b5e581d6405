#include "allocator/driver/cuda_streams.h"

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

CUstream Handle(StreamId stream) {
  return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(stream));
}

}  // namespace

absl::StatusOr<CudaStreams::Event*> CudaStreams::TakeEvent() {
  if (free_.empty()) {
    auto event = std::make_unique<Event>();
    const CUresult result = api_.cuEventCreate(&event->handle, CU_EVENT_DISABLE_TIMING);
    THIMBLE_RETURN_IF_ERROR(api_.ToStatus(result, "cuEventCreate"));
    free_.push_back(event.get());
    events_.push_back(std::move(event));
  }
  Event* const event = free_.back();
  free_.pop_back();
  event->holders = 1;
  return event;
}

void CudaStreams::DropEvent(Event* event) {
  if (--event->holders == 0) free_.push_back(event);
}

void CudaStreams::MarkPassed(Stream& stream, StreamSeq point) {
  while (stream.passed() < point) {
    DropEvent(stream.pending.front());
    stream.pending.pop_front();
  }
}

absl::StatusOr<bool> CudaStreams::Query(Stream& stream, StreamSeq point) {
  const CUresult result = api_.cuEventQuery(stream.EventOf(point)->handle);
  if (result == CUDA_ERROR_NOT_READY) return false;
  THIMBLE_RETURN_IF_ERROR(api_.ToStatus(result, "cuEventQuery"));
  MarkPassed(stream, point);
  return true;
}

absl::StatusOr<CudaStreams::Stream*> CudaStreams::Find(StreamId id, StreamSeq point) {
  Stream& stream = streams_[id];
  if (point <= stream.recorded) return &stream;
  return absl::InvalidArgumentError(absl::StrCat("point ", point.value(),
                                                 " of the stream was never recorded; the last is ",
                                                 stream.recorded.value()));
}

absl::StatusOr<StreamSeq> CudaStreams::Record(StreamId id) {
  MutexLock lock(&mutex_);
  const CurrentContext context(api_, context_);
  THIMBLE_RETURN_IF_ERROR(context.status());
  Stream& stream = streams_[id];
  // One point comes, so one may go: whoever records without ever asking needs no more events than
  // the device was ever behind.
  if (!stream.pending.empty()) {
    THIMBLE_RETURN_IF_ERROR(Query(stream, stream.passed() + 1).status());
  }
  THIMBLE_ASSIGN_OR_RETURN(Event* const event, TakeEvent());
  const CUresult result = api_.cuEventRecord(event->handle, Handle(id));
  if (result != CUDA_SUCCESS) {
    DropEvent(event);
    return api_.ToStatus(result, "cuEventRecord");
  }
  stream.pending.push_back(event);
  return ++stream.recorded;
}

absl::StatusOr<bool> CudaStreams::Passed(StreamId id, StreamSeq point) {
  MutexLock lock(&mutex_);
  THIMBLE_ASSIGN_OR_RETURN(Stream* const stream, Find(id, point));
  if (point <= stream->passed()) return true;
  const CurrentContext context(api_, context_);
  THIMBLE_RETURN_IF_ERROR(context.status());
  return Query(*stream, point);
}

absl::Status CudaStreams::Synchronize(const Event& event) const {
  const CurrentContext context(api_, context_);
  THIMBLE_RETURN_IF_ERROR(context.status());
  return api_.ToStatus(api_.cuEventSynchronize(event.handle), "cuEventSynchronize");
}

absl::Status CudaStreams::Wait(StreamId id, StreamSeq point) {
  Event* event = nullptr;
  {
    MutexLock lock(&mutex_);
    THIMBLE_ASSIGN_OR_RETURN(Stream* const stream, Find(id, point));
    if (point <= stream->passed()) return absl::OkStatus();
    event = stream->EventOf(point);
    ++event->holders;
  }
  const absl::Status status = Synchronize(*event);
  MutexLock lock(&mutex_);
  DropEvent(event);
  if (status.ok()) MarkPassed(streams_[id], point);
  return status;
}

void CudaStreams::DestroyEvents() {
  MutexLock lock(&mutex_);
  for (const auto& event : events_) api_.cuEventDestroy_v2(event->handle);
  events_.clear();
  free_.clear();
  streams_.clear();
}

}  // namespace thimble
