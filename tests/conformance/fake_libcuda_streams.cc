// The fake libcuda, part 3: copies and events. Work is done when it is submitted, except that an
// event on a held stream does not happen before the stream is released.
#include <chrono>
#include <thread>

#include "tests/conformance/fake_libcuda_state.h"

struct CUevent_st {
  bool pending = false;  // recorded on a stream that is still held
  CUstream stream = nullptr;
};

using thimble::MutexLock;
using thimble::fake_cuda::CurrentDevice;
using thimble::fake_cuda::Device;
using thimble::fake_cuda::GetState;

namespace thimble {
namespace fake_cuda {
namespace {

// Guarded by State::mutex.
struct Streams {
  std::set<CUstream> held;
  std::map<CUevent, std::unique_ptr<CUevent_st>> events;
  std::condition_variable_any released;
};

Streams& GetStreams() {
  static Streams* const streams = new Streams;
  return *streams;
}

// Null if `event` was destroyed or never made.
CUevent_st* Find(CUevent event) {
  const auto found = GetStreams().events.find(event);
  return found == GetStreams().events.end() ? nullptr : found->second.get();
}

void Release(CUstream stream) {
  Streams& streams = GetStreams();
  streams.held.erase(stream);
  for (const auto& [handle, event] : streams.events) {
    if (event->stream == stream) event->pending = false;
  }
}

}  // namespace

void ResetStreams() {
  MutexLock lock(&GetState().mutex);
  GetStreams().held.clear();
  GetStreams().events.clear();
}

int LiveEvents() {
  MutexLock lock(&GetState().mutex);
  return static_cast<int>(GetStreams().events.size());
}

}  // namespace fake_cuda
}  // namespace thimble

using thimble::fake_cuda::Find;
using thimble::fake_cuda::GetStreams;

extern "C" {

void fake_cuda_hold(CUstream stream) {
  MutexLock lock(&GetState().mutex);
  GetStreams().held.insert(stream);
}

void fake_cuda_release(CUstream stream) {
  MutexLock lock(&GetState().mutex);
  thimble::fake_cuda::Release(stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t size, CUstream stream) {
  FAKE_CUDA_ENTER("cuMemcpyHtoDAsync size=", size,
                  " stream=", reinterpret_cast<std::uintptr_t>(stream));
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return thimble::fake_cuda::ToResult(device->memory->Copy(
      to, const_cast<void*>(from), size, thimble::CopyDirection::kToDevice, thimble::StreamId{}));
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t size, CUstream stream) {
  FAKE_CUDA_ENTER("cuMemcpyDtoHAsync size=", size,
                  " stream=", reinterpret_cast<std::uintptr_t>(stream));
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return thimble::fake_cuda::ToResult(
      device->memory->Copy(from, to, size, thimble::CopyDirection::kToHost, thimble::StreamId{}));
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  FAKE_CUDA_ENTER("cuEventCreate flags=", flags);
  if (CurrentDevice() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto made = std::make_unique<CUevent_st>();
  *event = made.get();
  MutexLock lock(&GetState().mutex);
  GetStreams().events.emplace(*event, std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_CUDA_ENTER("cuEventDestroy");
  MutexLock lock(&GetState().mutex);
  return GetStreams().events.erase(event) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_CUDA_ENTER("cuEventRecord stream=", reinterpret_cast<std::uintptr_t>(stream));
  if (CurrentDevice() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  MutexLock lock(&GetState().mutex);
  CUevent_st* const found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *found = {GetStreams().held.count(stream) == 1, stream};
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  FAKE_CUDA_ENTER("cuEventQuery");
  MutexLock lock(&GetState().mutex);
  const CUevent_st* const found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return found->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  FAKE_CUDA_ENTER("cuEventSynchronize");
  // A test that never releases fails instead of hanging.
  const auto fuse = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < fuse) {
    {
      MutexLock lock(&GetState().mutex);
      const CUevent_st* const found = Find(event);
      if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      if (!found->pending) return CUDA_SUCCESS;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return CUDA_ERROR_LAUNCH_TIMEOUT;
}

}  // extern "C"
