// libcudart.so.12: streams, events and host callbacks, which are the driver's.
#include "tests/simgpu/libraries/cudart.h"

using simgpu::Finish;
using simgpu::RuntimeError;

SIMGPU_API RuntimeError cudaStreamCreateWithPriority(CUstream* stream, unsigned flags,
                                                     int priority) {
  const CUresult result = simgpu::EnterDevice();
  return Finish(result == CUDA_SUCCESS
                    ? SIMGPU_DRIVER(cuStreamCreateWithPriority)(stream, flags, priority)
                    : result);
}

SIMGPU_API RuntimeError cudaStreamCreateWithFlags(CUstream* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

SIMGPU_API RuntimeError cudaStreamCreate(CUstream* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

SIMGPU_API RuntimeError cudaStreamDestroy(CUstream stream) {
  return Finish(SIMGPU_DRIVER(cuStreamDestroy)(stream));
}

SIMGPU_API RuntimeError cudaStreamSynchronize(CUstream stream) {
  return Finish(SIMGPU_DRIVER(cuStreamSynchronize)(stream));
}

SIMGPU_API RuntimeError cudaStreamQuery(CUstream stream) {
  return Finish(SIMGPU_DRIVER(cuStreamQuery)(stream));
}

SIMGPU_API RuntimeError cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return Finish(SIMGPU_DRIVER(cuStreamWaitEvent)(stream, event, flags));
}

SIMGPU_API RuntimeError cudaStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Finish(SIMGPU_DRIVER(cuStreamIsCapturing)(stream, status));
}

SIMGPU_API RuntimeError cudaLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return Finish(SIMGPU_DRIVER(cuLaunchHostFunc)(stream, function, data));
}

SIMGPU_API RuntimeError cudaStreamAddCallback(CUstream stream, CUstreamCallback function,
                                              void* data, unsigned flags) {
  return Finish(SIMGPU_DRIVER(cuStreamAddCallback)(stream, function, data, flags));
}

SIMGPU_API RuntimeError cudaEventCreateWithFlags(CUevent* event, unsigned flags) {
  const CUresult result = simgpu::EnterDevice();
  return Finish(result == CUDA_SUCCESS ? SIMGPU_DRIVER(cuEventCreate)(event, flags) : result);
}

SIMGPU_API RuntimeError cudaEventCreate(CUevent* event) {
  return cudaEventCreateWithFlags(event, 0);
}

SIMGPU_API RuntimeError cudaEventDestroy(CUevent event) {
  return Finish(SIMGPU_DRIVER(cuEventDestroy)(event));
}

SIMGPU_API RuntimeError cudaEventRecord(CUevent event, CUstream stream) {
  return Finish(SIMGPU_DRIVER(cuEventRecord)(event, stream));
}

SIMGPU_API RuntimeError cudaEventQuery(CUevent event) {
  return Finish(SIMGPU_DRIVER(cuEventQuery)(event));
}

SIMGPU_API RuntimeError cudaEventSynchronize(CUevent event) {
  return Finish(SIMGPU_DRIVER(cuEventSynchronize)(event));
}

SIMGPU_API RuntimeError cudaEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return Finish(SIMGPU_DRIVER(cuEventElapsedTime)(milliseconds, start, end));
}
