// Tells tools where blocks are: compute-sanitizer and Nsight see one large allocation otherwise.
//
// By NVTX, which every tool of NVIDIA's listens to, each range of an arena's addresses is a heap,
// and each block in it a region, of the bytes that were requested: a tool can tell an access behind
// the end of a block, or to a block that was freed, from one to its neighbour. Without a tool the
// calls do nothing.
//
// Invariant: regions are registered between the registration of their heap and its end, and no two
// of them overlap: an arena reports a free before anybody else can have the bytes.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"
#include "allocator/base/mutex.h"

struct nvtxMemHeap_v1;

namespace thimble {

class NvtxListener final : public EventSink {
 public:
  // kUnimplemented if NVTX's headers were not there when this was built.
  static absl::StatusOr<std::unique_ptr<NvtxListener>> Create();

  ~NvtxListener();
  NvtxListener(const NvtxListener&) = delete;
  NvtxListener& operator=(const NvtxListener&) = delete;

  // Reserved addresses in which there will be blocks. They stay reserved until the listener is
  // gone.
  void AddRange(Address address, Bytes bytes);

  // Blocks that are handed out or returned; nothing for other events.
  void Append(const Event& event) override;

 private:
  using Heap = nvtxMemHeap_v1*;

  NvtxListener() { enabled_ = true; }

  Heap HeapOf(Address address);

  Mutex mutex_{LockRank::kDriver};
  std::map<Address, Heap> heaps_ ABSL_GUARDED_BY(mutex_);  // by their first address
};

}  // namespace thimble
