#include "allocator/driver/cuda_copy_engines.h"

#include "allocator/base/status_macros.h"

namespace thimble {

absl::StatusOr<CUstream> CudaCopyEngines::StreamFor(CopyDirection direction) {
  MutexLock lock(&mutex_);
  CUstream& stream = streams_[static_cast<std::size_t>(direction)];
  if (stream == nullptr) {
    // Not ordered with the legacy default stream, in which frameworks may have work.
    const CUresult result = api_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) stream = nullptr;
    THIMBLE_RETURN_IF_ERROR(api_.ToStatus(result, "cuStreamCreate"));
  }
  return stream;
}

absl::Status CudaCopyEngines::Copy(Address device, void* host, Bytes bytes,
                                   CopyDirection direction) {
  if (bytes == 0) return absl::OkStatus();
  const CurrentContext context(api_, context_);
  THIMBLE_RETURN_IF_ERROR(context.status());
  THIMBLE_ASSIGN_OR_RETURN(const CUstream stream, StreamFor(direction));
  THIMBLE_RETURN_IF_ERROR(
      direction == CopyDirection::kToDevice
          ? api_.ToStatus(api_.cuMemcpyHtoDAsync_v2(ToCuda(device), host, bytes, stream),
                          "cuMemcpyHtoDAsync")
          : api_.ToStatus(api_.cuMemcpyDtoHAsync_v2(host, ToCuda(device), bytes, stream),
                          "cuMemcpyDtoHAsync"));
  return api_.ToStatus(api_.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void CudaCopyEngines::DestroyStreams() {
  MutexLock lock(&mutex_);
  for (CUstream& stream : streams_) {
    if (stream != nullptr) api_.cuStreamDestroy_v2(stream);
    stream = nullptr;
  }
}

}  // namespace thimble
