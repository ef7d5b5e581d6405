// A CUDA GPU: the fourteen calls on the virtual memory functions of libcuda (cuMem*).
//
//   - libcuda is opened when a driver is opened. A machine without it, without a GPU, or with one
//     that has no virtual memory management gets a status that says so.
//   - The rules R1-R8 are libcuda's own; this class adds no table and no lock around them.
//   - It works in the device's primary context, which is the one TensorFlow and JAX use. Every call
//     may come from any thread and leaves the context that was current there as it was.
//   - A chunk is pinned memory of the device. Nobody outside the process can map it unless the
//     driver was opened as shareable.
//   - When the driver library is already shut down (the process is ending), the destructor notices
//     and leaves everything to the operating system.
//
// No type of cuda.h appears here: only this folder is compiled against it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "allocator/driver/driver.h"

struct CUctx_st;  // *CUcontext

namespace thimble {

struct CudaApi;
class CudaCopyEngines;
class CudaStreams;

struct CudaOptions {
  int ordinal = 0;                       // which device, as libcuda counts them
  std::vector<int> peers;                // devices that may read and write this one's memory too
  bool shareable = false;                // Export and Import work
  std::string library = "libcuda.so.1";  // a path if it contains a slash
};

class CudaDriver : public Driver {
 public:
  // kUnavailable: no library, no device, or one that lacks what is needed. kInvalidArgument: an
  // ordinal that does not exist, or a peer that cannot reach the device.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Open(const CudaOptions& options);

  // What was not released stays with the primary context.
  ~CudaDriver() override;

  const DriverProperties& properties() const override { return properties_; }
  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override;
  absl::Status Release(Address address, Bytes bytes) override;
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override;
  absl::Status Destroy(ChunkHandle chunk) override;
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override;
  absl::Status Unmap(Address address, Bytes bytes) override;
  absl::Status SetAccess(Address address, Bytes bytes) override;
  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override;
  absl::Status PinHost(void* host, Bytes bytes) override;
  absl::Status UnpinHost(void* host) override;
  absl::StatusOr<StreamSeq> Record(StreamId stream) override;
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override;
  absl::Status Wait(StreamId stream, StreamSeq point) override;
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override;

  // A file descriptor, owned by the caller, that another process can import. It counts as a
  // reference to the chunk (R8), and so does the handle that Import returns.
  absl::StatusOr<int> Export(ChunkHandle chunk);
  absl::StatusOr<ChunkHandle> Import(int descriptor);

 private:
  CudaDriver(std::unique_ptr<const CudaApi> api, const CudaOptions& options,
             DriverProperties properties, int device, CUctx_st* context);

  // Runs one libcuda function in the primary context.
  template <typename Function>
  absl::Status Call(const char* name, Function function) const;

  const std::unique_ptr<const CudaApi> api_;
  const DriverProperties properties_;
  const int device_;
  CUctx_st* const context_;  // retained once by us
  const bool shareable_;
  std::vector<int> accessors_;  // devices that SetAccess opens memory to: ours, then the peers
  std::unique_ptr<CudaStreams> streams_;
  std::unique_ptr<CudaCopyEngines> engines_;
};

}  // namespace thimble
