// libnccl.so.2: communicators over any number of devices and processes, without their traffic.
//
// Ranks do not communicate. A communicator is its size and the caller's rank, and a collective uses
// only this rank's bytes, as if the others contributed zeros. So buffers are real, are checked, and
// have NCCL's sizes, but sums are wrong. A missing rank is not noticed.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "tests/simgpu/libraries/driver.h"

namespace {

using simgpu::DevicePointer;

enum Result { kSuccess = 0, kUnhandledCudaError = 1, kInvalidArgument = 4 };

struct UniqueId {
  char bytes[128];
};

struct Communicator {
  int size;
  int rank;
  CUdevice device;
};

std::size_t BytesOf(int type) {
  static constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const bool known = type >= 0 && type < static_cast<int>(sizeof kBytes / sizeof kBytes[0]);
  return known ? kBytes[type] : 0;
}

Result Open(Communicator** communicator, int size, int rank) {
  if (!communicator || size < 1 || rank < 0 || rank >= size) return kInvalidArgument;
  CUdevice device = 0;
  if (SIMGPU_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return kUnhandledCudaError;
  *communicator = new Communicator{size, rank, device};
  return kSuccess;
}

// Copies `count` elements, as the last step of every collective; from == to is an operation in
// place, whose buffer is still checked. `sent` is how many times its bytes a rank sends.
Result Copy(const void* from, void* to, std::size_t count, int type, CUstream stream,
            const char* who, double sent = 1) {
  const std::size_t bytes = count * BytesOf(type);
  if (count && !bytes) return kInvalidArgument;
  if (!bytes) return kSuccess;
  const void* const pointers[] = {from, to};
  simgpu_work work = {};
  work.name = who;
  work.stream = stream;
  work.link_bytes = sent * static_cast<double>(bytes);
  work.pointers = pointers;
  work.pointer_count = 2;
  if (!simgpu::Submit(work)) return kUnhandledCudaError;
  if (from == to) return kSuccess;
  const CUresult result =
      SIMGPU_DRIVER(cuMemcpyDtoDAsync)(DevicePointer(to), DevicePointer(from), bytes, stream);
  return result == CUDA_SUCCESS ? kSuccess : kUnhandledCudaError;
}

// What a rank of a ring sends of its own part, for all others.
double Others(const Communicator* communicator) { return communicator->size - 1; }

template <typename Byte>
Byte* Part(Byte* buffer, std::size_t index, std::size_t count, int type) {
  using Character = std::conditional_t<std::is_const_v<Byte>, const char, char>;
  return static_cast<Character*>(buffer) + index * count * BytesOf(type);
}

}  // namespace

SIMGPU_API Result ncclGetUniqueId(UniqueId* id) {
  static std::atomic<unsigned> count{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, sizeof id->bytes, "simgpu %d %u", static_cast<int>(getpid()), count++);
  return kSuccess;
}

SIMGPU_API Result ncclCommInitRank(Communicator** communicator, int size, UniqueId, int rank) {
  return Open(communicator, size, rank);
}

SIMGPU_API Result ncclCommInitRankConfig(Communicator** communicator, int size, UniqueId, int rank,
                                         void*) {
  return Open(communicator, size, rank);
}

SIMGPU_API Result ncclCommInitRankScalable(Communicator** communicator, int size, int rank, int,
                                           UniqueId*, void*) {
  return Open(communicator, size, rank);
}

SIMGPU_API Result ncclCommInitAll(Communicator** communicators, int size, const int* devices) {
  for (int rank = 0; rank < size; ++rank) {
    communicators[rank] = new Communicator{size, rank, devices ? devices[rank] : rank};
  }
  return kSuccess;
}

SIMGPU_API Result ncclCommFinalize(Communicator*) { return kSuccess; }

SIMGPU_API Result ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return kSuccess;
}

SIMGPU_API Result ncclCommAbort(Communicator* communicator) {
  return ncclCommDestroy(communicator);
}

SIMGPU_API Result ncclCommGetAsyncError(Communicator*, Result* error) {
  *error = kSuccess;
  return kSuccess;
}

SIMGPU_API Result ncclCommCount(const Communicator* communicator, int* size) {
  *size = communicator->size;
  return kSuccess;
}

SIMGPU_API Result ncclCommUserRank(const Communicator* communicator, int* rank) {
  *rank = communicator->rank;
  return kSuccess;
}

SIMGPU_API Result ncclCommCuDevice(const Communicator* communicator, int* device) {
  *device = communicator->device;
  return kSuccess;
}

// A registered buffer may neither move nor lose its memory; here it is checked once.
SIMGPU_API Result ncclCommRegister(const Communicator*, void* buffer, std::size_t, void** handle) {
  if (simgpu_bad_pointer(buffer, "ncclCommRegister")) return kUnhandledCudaError;
  *handle = buffer;
  return kSuccess;
}

SIMGPU_API Result ncclCommDeregister(const Communicator*, void* handle) {
  return simgpu_bad_pointer(handle, "ncclCommDeregister") ? kUnhandledCudaError : kSuccess;
}

SIMGPU_API Result ncclMemAlloc(void** pointer, std::size_t bytes) {
  const CUresult result = SIMGPU_DRIVER(cuMemAlloc)(reinterpret_cast<CUdeviceptr*>(pointer), bytes);
  return result == CUDA_SUCCESS ? kSuccess : kUnhandledCudaError;
}

SIMGPU_API Result ncclMemFree(void* pointer) {
  const CUresult result = SIMGPU_DRIVER(cuMemFree)(DevicePointer(pointer));
  return result == CUDA_SUCCESS ? kSuccess : kUnhandledCudaError;
}

SIMGPU_API Result ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int,
                                Communicator* communicator, CUstream stream) {
  return Copy(send, receive, count, type, stream, "ncclAllReduce",
              2 * Others(communicator) / communicator->size);
}

SIMGPU_API Result ncclReduce(const void* send, void* receive, std::size_t count, int type, int,
                             int root, Communicator* communicator, CUstream stream) {
  void* const target = communicator->rank == root ? receive : const_cast<void*>(send);
  return Copy(send, target, count, type, stream, "ncclReduce");
}

SIMGPU_API Result ncclBroadcast(const void* send, void* receive, std::size_t count, int type,
                                int root, Communicator* communicator, CUstream stream) {
  const void* const source = communicator->rank == root ? send : receive;
  return Copy(source, receive, count, type, stream, "ncclBroadcast");
}

SIMGPU_API Result ncclBcast(void* buffer, std::size_t count, int type, int, Communicator*,
                            CUstream stream) {
  return Copy(buffer, buffer, count, type, stream, "ncclBcast");
}

SIMGPU_API Result ncclAllGather(const void* send, void* receive, std::size_t count, int type,
                                Communicator* communicator, CUstream stream) {
  void* const own = Part(receive, communicator->rank, count, type);
  return Copy(send, own, count, type, stream, "ncclAllGather", Others(communicator));
}

SIMGPU_API Result ncclReduceScatter(const void* send, void* receive, std::size_t count, int type,
                                    int, Communicator* communicator, CUstream stream) {
  const void* const own = Part(send, communicator->rank, count, type);
  return Copy(own, receive, count, type, stream, "ncclReduceScatter", Others(communicator));
}

SIMGPU_API Result ncclAlltoAll(const void* send, void* receive, std::size_t count, int type,
                               Communicator* communicator, CUstream stream) {
  const void* const own = Part(send, communicator->rank, count, type);
  return Copy(own, Part(receive, communicator->rank, count, type), count, type, stream,
              "ncclAlltoAll", Others(communicator));
}

SIMGPU_API Result ncclSend(const void* buffer, std::size_t count, int type, int, Communicator*,
                           CUstream stream) {
  return Copy(buffer, const_cast<void*>(buffer), count, type, stream, "ncclSend");
}

SIMGPU_API Result ncclRecv(void* buffer, std::size_t count, int type, int, Communicator*,
                           CUstream stream) {
  return Copy(buffer, buffer, count, type, stream, "ncclRecv");
}
