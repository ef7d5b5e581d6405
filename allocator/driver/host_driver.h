// A device made of Linux memory: a memfd stands for the physical memory, mmap for the page tables.
// It refuses everything CUDA refuses (ShadowTable), so code that runs here runs on a GPU.
//
// Model:
//   - One sparse memfd holds all chunks. A chunk costs nothing until its bytes are written, and the
//     driver itself never touches a byte except in Copy.
//   - Reserve maps PROT_NONE anonymous memory; Map puts a part of the file there, still PROT_NONE;
//     SetAccess makes it readable and writable; Unmap restores the anonymous memory. An access that
//     would be illegal on a GPU is therefore a SIGSEGV here.
//   - When the last handle and the last mapping of a chunk are gone, its pages are punched out of
//     the file. No chunk is ever part of a core dump.
//   - Work on a stream is done when it is submitted: every recorded point is already passed.
//
// Forks. A child has the bytes of the moment of the fork, and what either process writes from then
// on is its own, as with all other memory: see ShadowTable. The child cannot call the driver.
//
// Areas. Linux allows a process vm.max_map_count areas (65,530 unless changed), and everything in
// the process draws on them. Neighbouring chunks that are neighbours in the file share one, and
// chunks made one after another are neighbours. The cap is handled so:
//   - Reserve, Map and SetAccess are refused (kResourceExhausted) once all host drivers of the
//     process together would have more than HostOptions::max_areas: three quarters of the cap.
//   - Unmap in the middle of a shared area needs up to two more. It is never refused by this count:
//     the last quarter of the cap is its headroom. Only when the rest of the process has used up
//     that quarter can it fail, cleanly: kResourceExhausted, the mapping still in place.
//   - A kernel that refuses earlier, because of others, is reported in the same way. Linux then
//     refuses even calls that would free areas; SpareAreas gets Unmap and Release past that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "allocator/base/fork.h"
#include "allocator/base/mutex.h"
#include "allocator/base/range_pool.h"
#include "allocator/driver/driver.h"
#include "allocator/driver/shadow_table.h"
#include "allocator/driver/spare_areas.h"

namespace thimble {

struct HostOptions {
  Bytes total_bytes = 16 * kGiB;  // what the device pretends to have; at most 2^56
  Bytes granularity = 2 * kMiB;   // a power of two, at least the page size
  std::uint64_t max_areas = 0;    // 0: three quarters of vm.max_map_count
};

class HostDriver : public Driver, private ForkListener {
 public:
  static absl::StatusOr<std::unique_ptr<HostDriver>> Open(const HostOptions& options);

  // Unmaps everything: all addresses of this driver become invalid.
  ~HostDriver() override;

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

  void LeaveToChild(Address device, const void* host, Bytes bytes) override;

  // A second handle for a chunk, as whoever imported it would hold (R8). It is destroyed on its
  // own.
  absl::StatusOr<ChunkHandle> Share(ChunkHandle chunk);

  // Which physical byte is behind an address, and which ranges are behind many: two addresses are
  // aliases if and only if they translate to the same offset. For oracles in tests and benchmarks.
  absl::StatusOr<Bytes> Translate(Address address) const;
  absl::StatusOr<std::vector<FileRange>> TranslateRange(Address address, Bytes bytes) const;

  // No fewer than the kernel has for this driver.
  std::uint64_t areas() const;
  void CheckInvariants() const;

 private:
  HostDriver(const HostOptions& options, int file);

  // The areas of the table enter the count of the process. BookAreas refuses, and leaves the count
  // alone, if that would exceed max_areas; SettleAreas follows whatever the table says: after an
  // Unmap, or when a change was taken back.
  absl::Status BookAreas() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleAreas() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs a call that ends up with fewer areas; if the kernel has none for it, with the spare ones.
  template <typename Function>
  absl::Status FreeAreas(Function function) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Nothing refers to these bytes any more, but perhaps a child.
  void FreeBytes(DeadRange dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Punch(FileRange dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What children kept from being freed or shared, if they are gone.
  void ReclaimFromChildren() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Bytes taken_bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return file_ranges_.taken_bytes() - left_to_children_bytes_;
  }

  void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS override;
  void AfterFork(ForkSide side) ABSL_NO_THREAD_SAFETY_ANALYSIS override;

  struct ForChild {
    Address device;
    void* copy;
    Bytes bytes;
  };

  const DriverProperties properties_;
  const std::uint64_t max_areas_;
  const int file_;

  mutable Mutex mutex_{LockRank::kDriver};
  ShadowTable table_ ABSL_GUARDED_BY(mutex_);
  RangePool file_ranges_ ABSL_GUARDED_BY(mutex_);  // which bytes of the file are chunks
  std::vector<FileRange> left_to_children_ ABSL_GUARDED_BY(mutex_);  // of these, dead here
  Bytes left_to_children_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ForChild> for_child_ ABSL_GUARDED_BY(mutex_);  // until the fork is over
  SpareAreas spare_areas_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t booked_areas_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<StreamId, StreamSeq> recorded_ ABSL_GUARDED_BY(mutex_);
  std::map<Address, Bytes> pinned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thimble
