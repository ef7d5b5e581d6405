// Tells tools where blocks are: compute-sanitizer and Nsight see one large allocation otherwise.
//
// A driver around another one. By NVTX, which every tool of NVIDIA's listens to, each range of
// reserved addresses is a heap, and each block in it a region, of the bytes that were asked for: a
// tool can tell an access behind the end of a block, or to a block that was freed, from one to its
// neighbour. Without a tool the calls do nothing.
//
// Invariant: regions are registered between the registration of their heap and its end, and no two
// of them overlap: the arena tells of a free before anybody else can have the bytes.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "allocator/base/event.h"
#include "allocator/base/mutex.h"
#include "allocator/driver/forwarding_driver.h"

struct nvtxMemHeap_v1;

namespace thimble {

class NvtxDriver final : public ForwardingDriver {
 public:
  // kUnimplemented if NVTX's headers were not there when this was built.
  static absl::StatusOr<std::unique_ptr<Driver>> Wrap(std::unique_ptr<Driver> base);

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override;
  absl::Status Release(Address address, Bytes bytes) override;
  EventSink* listener() override { return &regions_; }

 private:
  using Heap = nvtxMemHeap_v1*;

  // Hears of blocks.
  class Regions final : public EventSink {
   public:
    explicit Regions(NvtxDriver* driver) : driver_(driver) { enabled_ = true; }
    void Append(const Event& event) override;

   private:
    NvtxDriver* const driver_;
  };

  explicit NvtxDriver(std::unique_ptr<Driver> base)
      : ForwardingDriver(*base), base_(std::move(base)), regions_(this) {}

  Heap HeapOf(Address address);

  const std::unique_ptr<Driver> base_;
  Regions regions_;
  Mutex mutex_{LockRank::kDriver};
  std::map<Address, Heap> heaps_ ABSL_GUARDED_BY(mutex_);  // by their first address
};

}  // namespace thimble
