// All memory of one device, for one thread at a time: finds a place for a request, by best fit,
// by stitching or by taking more from the driver, and takes blocks back.
//
// It joins the layers below: chunks and aliases (vmm/), who owns which byte (Heap), stitched blocks
// (Stitcher), streams (Frontier), and the map from what callers hold to blocks.
//
// Invariants (CheckInvariants() proves them, and those of all parts):
//   P1  Every address in the map names a block in use, and every block in use is in the map or is
//       a later extent of one that is.
//   P2  At most limit() bytes are backed by chunks.
//   P3  What the heap calls free or used is backed by a chunk; what it calls vacant is not. Only
//       absent_bytes() of blocks in use have no chunk: their bytes are on the host.
//   P4  A call that fails leaves blocks, contents and reserved() as they were.
//   P5  With plans, every large block in use has a site of its own, and every taken site a block,
//       but where the table of sites was full.
//   P6  What the heap holds for the plan is open in the plan area or in use there, never both.
//
// A plan hands out its places in an area of its own (plan/plan_area.h), past the heap, as long as
// one stream uses it. Settle() gives all of it back to the heap; the plan takes it again bit by
// bit.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena/peaks.h"
#include "allocator/arena/request.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/driver/driver.h"
#include "allocator/plan/planner.h"
#include "allocator/stitch/frontier.h"
#include "allocator/stitch/heap.h"
#include "allocator/stitch/pointer_map.h"
#include "allocator/stitch/stitcher.h"
#include "allocator/vmm/alias_space.h"
#include "allocator/vmm/home_space.h"

namespace thimble {

struct BlockInfo {
  Bytes bytes = 0;  // usable from the block's address
  std::uint64_t key = 0;
  std::uint64_t seams = 0;
  Address address;
};

struct SpaceOptions {
  Bytes limit = 0;        // a positive multiple of chunk_bytes; it may be lowered later
  Bytes chunk_bytes = 0;  // a power of two, at least the driver's granularity
  bool stitch = true;
  bool plan = false;
  bool swap = false;  // not together with plan
};

class Space {
 public:
  // `driver` must outlive the space.
  static absl::StatusOr<std::unique_ptr<Space>> Create(Driver* driver, const SpaceOptions& options);

  // `bytes` is a positive multiple of kUnit, `alignment` from kUnit to HomeSpace::kAlignment.
  // kResourceExhausted if neither the free memory nor what the driver and the limit allow suffice.
  absl::StatusOr<Address> Allocate(Request& request);

  // kInvalidArgument if `address` is not a block in use; the message says what it is instead.
  absl::Status Free(Address address, StreamId stream);

  // Takes `bytes`, a multiple of chunk_bytes, from the driver ahead of need.
  absl::Status Grow(Bytes bytes);

  // Returns whole chunks that are free on every stream to the driver until at most `keep` bytes are
  // reserved, and says how many bytes that was. An error stops it between two chunks.
  absl::Status Trim(Bytes keep, Bytes* released);

  // Waits for what was freed on `stream` and forgets it.
  absl::Status ForgetStream(StreamId stream);

  // --- Plans (space_plan.cc), with SpaceOptions::plan only ---------------------------------------

  // What an earlier process has learned. To be called first.
  void RestorePlans(const Learned& learned) { planner_->Restore(learned); }
  // Turns the blocks of the plan area into blocks of the heap and frees the rest of the area.
  // Before that, heap() and pointers() tell only part of the truth.
  void Settle();
  // Whether it is time to call DraftPlan().
  bool WantsDraft() const { return planner_ != nullptr && planner_->WantsDraft(); }
  // Nothing if a later moment may be better.
  std::optional<Planner::Draft> DraftPlan();
  // An answer to the draft, nothing if there is none.
  void AdoptPlan(const Planner::Draft& draft, const std::optional<plan::Plan>& plan);
  // Whether it is time to call ActivatePlan(), best after waiting for the streams: it moves free
  // memory to where the plan needs it and returns the rest to the driver.
  bool PlanIsDue() const { return planner_ != nullptr && planner_->IsDue(); }
  void ActivatePlan();
  PlanStats plan_stats() const { return planner_ == nullptr ? PlanStats() : planner_->stats(); }

  // --- Swapping (space_swap.cc), with SpaceOptions::swap only ------------------------------------

  // How much of a block of this size can leave, in whole chunks. A block that is rounded up to
  // whole chunks, by at most a quarter, can leave completely.
  Bytes MovableBytes(Bytes bytes) const {
    const Bytes whole = AlignUp(bytes, options_.chunk_bytes);
    return whole - bytes <= bytes / 4 ? whole : AlignDown(bytes, options_.chunk_bytes);
  }
  // The whole chunks of the block at `address`: what Evict() and Fetch() are about.
  // Empty if it has none.
  AddressRange MovableOf(Address address) const;
  // All addresses of the block there if some of it could leave; otherwise empty.
  AddressRange AddressesOf(Address address) const;
  // Takes their memory away. The caller has copied the bytes, and no stream uses them. What the
  // driver refuses to unmap stays; an error means that all of it does.
  absl::Status Evict(Address address);
  // Gives all of them memory again, with undefined contents. All or nothing; kResourceExhausted if
  // there is not enough.
  absl::Status Fetch(Address address);
  Bytes absent_bytes() const { return absent_bytes_; }  // of blocks in use
  // About as much as Fetch() can give without anything being evicted or freed.
  Bytes room() const { return ceiling() - home_->backed_bytes() + heap_.free_bytes(Pool::kLarge); }

  // A limit for growth only, below limit(); exceeded where there is no other way.
  Bytes goal() const { return std::min(goal_, limit_); }
  void set_goal(Bytes goal) { goal_ = goal; }
  void set_may_exceed_goal(bool may) { may_exceed_goal_ = may; }

  // --- Rungs of the OOM ladder. Each makes room that Allocate() may find. ------------------------

  void CleanPassed();  // what streams have passed
  // Points that CleanPassed() needs to be passed to clean all that is free now.
  absl::StatusOr<std::vector<StreamPoint>> RecordStreams() {
    Settle();
    return frontier_.RecordAll();
  }
  void DropIdle();  // aliases and slabs that nobody uses

  // --- Reporting ---------------------------------------------------------------------------------

  // From now on reports mappings and sites that move to `events`, which must outlive the space.
  void ReportTo(EventSink* events) {
    events_ = events;
    home_->ReportTo(events);
    aliases_->ReportTo(events);
  }
  void ReportUnmapped() { home_->ReportUnmapped(); }
  void ReportMappings();  // all there are now
  void ReportPlaces();    // all of the plan that serves

  // --- Looking (space_look.cc). Nothing changes; blocks in the plan area are seen, too. ----------

  // An interval of the home space that is all used, all free or all vacant.
  struct Piece {
    Extent extent;
    BlockState state = BlockState::kFree;  // never kHeld
    Pool pool = Pool::kLarge;
    StreamTag tag = kCleanTag;  // free: the stream that may use it
    std::uint64_t key = 0;      // used: who asked
    BlockId id = kNoBlock;      // of the heap; kNoBlock in the plan area
  };
  // In the order of their addresses. They tile the home space up to the last one.
  std::vector<Piece> Pieces() const;
  // Nothing if there is no block at `address`.
  std::optional<BlockInfo> Describe(Address address) const;
  // Nothing if `inside` points into no block. Takes long for blocks in the plan area and for
  // stitched ones: O(blocks).
  std::optional<BlockInfo> DescribeAround(Address inside) const;
  Bytes used() const { return heap_.used_bytes() + plan_area_used_ - absent_bytes_; }
  Bytes free_bytes(Pool pool) const {
    const Bytes in_plan_area = pool == Pool::kLarge ? heap_.held_bytes() - plan_area_used_ : 0;
    return heap_.free_bytes(pool) + in_plan_area;
  }
  Bytes LargestFree() const;  // in one piece, whoever may use it
  // Small blocks that threads cache are in use here; `live_blocks` counts them, too.
  ArenaStats GetStats() const;
  // What is counted as it happens, here and by the arena; GetStats() adds what is so now.
  ArenaStats& counts() { return counts_; }

  // --- Looking at parts, after Settle() ----------------------------------------------------------

  // The first block of the chain at `address`, or nullptr.
  const Block* Find(Address address) const;
  Bytes BytesOf(const Block& first) const;  // of the whole chain

  bool IsHome(Address address) const { return address - home_->base() < home_->capacity(); }
  Bytes HomeOffset(Address address) const { return address - home_->base(); }
  // Whether a request of this size is served from slabs.
  bool IsSmall(Bytes bytes) const { return bytes < small_limit_; }

  std::array<AddressRange, 2> AddressRanges() const {
    return {AddressRange{home_->base(), home_->base() + home_->capacity()}, aliases_->addresses()};
  }
  Driver& driver() const { return home_->driver(); }
  const Heap& heap() const { return heap_; }
  const HomeSpace& home() const { return *home_; }
  const Stitcher& stitcher() const { return stitcher_; }
  const PointerMap& pointers() const { return pointers_; }
  // Nothing for a stream that was never seen.
  Bytes LargestStitch(StreamId stream);
  // How a request could be placed in what is free: in one piece, from several, or by moving some.
  enum class Placing : std::uint8_t { kWhole, kStitched, kMoved };
  // So many bytes of whole chunks would have to come from the driver for `request`; 0: none.
  Bytes Shortfall(const Request& request, Placing placing);

  Bytes limit() const { return limit_; }
  Bytes largest_limit() const { return options_.limit; }
  Bytes chunk_bytes() const { return options_.chunk_bytes; }
  // A multiple of chunk_bytes() up to largest_limit(), and not less than is backed (P2).
  void set_limit(Bytes limit) { limit_ = limit; }
  bool stitch() const { return options_.stitch; }
  bool plan() const { return options_.plan; }
  Bytes reserved() const { return home_->backed_bytes() + home_->spare_bytes(); }
  const Peaks& used_peaks() const { return used_peaks_; }
  const Peaks& reserved_peaks() const { return reserved_peaks_; }
  void ResetPeaks();
  // Of both.
  void SetPeakMark(PeakMark mark);
  void RemovePeakMark(PeakMark mark);
  void CheckInvariants() const;  // O(blocks + mappings)

 private:
  using Growth = std::vector<Extent>;

  // In the map of pointers, a block of the plan area is named by its site.
  static constexpr BlockId kInPlanArea = BlockId{1} << 31;
  static bool IsInPlanArea(BlockId id) { return (id & kInPlanArea) != 0; }
  static SiteId SiteInPlanArea(BlockId id) { return id & ~kInPlanArea; }

  Space(const SpaceOptions& options, std::unique_ptr<HomeSpace> home,
        std::unique_ptr<AliasSpace> aliases);

  absl::StatusOr<StreamTag> TagOf(StreamId stream);
  // A block that is there already, or none.
  Address PlannedFit(const Request& request, StreamTag tag);
  Address PlanAreaFit(const Place& place, const Request& request, StreamTag tag);
  Address TakeAt(Bytes offset, const Request& request, StreamTag tag);
  void LeavePlanArea(SiteId site);
  void SharePlanArea();
  absl::StatusOr<Address> AllocateLarge(const Request& request, StreamTag tag);
  Address LongLivedFit(const Request& request, StreamTag tag);
  absl::Status Retire(StreamTag tag);
  Address BestFit(Pool pool, const Request& request, StreamTag tag);
  Address SmallFit(const Request& request, StreamTag tag);
  absl::StatusOr<Address> StitchOrGrow(const Request& request, StreamTag tag);
  absl::StatusOr<Address> BuildOrGrow(const Request& request, StreamTag tag, Waste waste);
  absl::StatusOr<Address> GrowByMoving(const Request& request, StreamTag tag);
  absl::Status BackByMoving(Bytes offset, Bytes bytes);
  void DetachIdle(Bytes bytes);
  void FreeAbsent(BlockId id);
  void MakeMovable(Request* request) const;
  Extent WholeChunksOf(const Block& block) const;
  Extent AbsentPartOf(const Block& block) const;
  Bytes CheckBacking(const Block& block) const;
  absl::StatusOr<Address> GrowContiguously(const Request& request, StreamTag tag);
  bool GrowWithinSlack(Bytes bytes, StreamTag tag);
  Bytes ContiguousShortfall(Bytes bytes, StreamTag tag) const;
  Address Hand(Placed placed, const Request& request);
  Address HandStitched(Placed placed, const Request& request);

  absl::StatusOr<Growth> TakeFromDriver(Bytes bytes, StreamTag tag, bool at_end);
  absl::Status TakeFromDriverAt(Bytes offset, Bytes bytes, StreamTag tag, Growth* growth);
  absl::Status BackAt(Bytes offset, Bytes bytes, Bytes chunk_bytes, StreamTag tag);
  void AddBacked(Bytes offset, Bytes bytes, StreamTag tag);
  void UndoGrowth(const Growth& growth);
  template <typename Visit>
  void ForEachIdleChunk(Visit visit);
  std::vector<Extent> FindObstacles() const;
  Extent InnerOf(Extent gap) const;
  Bytes BackedBytes(Extent slots) const;
  Planner::Ground FindGround() const;
  void FindHeld(Planner::Ground* ground) const;
  bool IsGoodMoment() const;
  bool BackRegion(Extent region);
  void ReportPlace(SiteId site);
  std::vector<SiteId> SitesInPlanArea() const;  // by address
  absl::Status NotABlock(Address address) const;
  void CheckSites() const;
  void CheckPlanArea() const;

  // How much may be backed now.
  Bytes ceiling() const {
    return may_exceed_goal_ ? limit_ : std::max(goal(), home_->backed_bytes());
  }

  const SpaceOptions options_;
  const Bytes small_limit_;
  Bytes limit_;
  Bytes goal_;
  bool may_exceed_goal_ = false;
  std::unique_ptr<HomeSpace> home_;
  std::unique_ptr<AliasSpace> aliases_;
  Frontier frontier_;
  Heap heap_;
  Stitcher stitcher_;
  PointerMap pointers_;
  const std::unique_ptr<Planner> planner_;  // null if plans are off
  EventSink* events_ = nullptr;             // null: nobody
  Bytes plan_area_used_ = 0;                // bytes of blocks there
  StreamTag plan_area_tag_ = kCleanTag;     // the one stream that uses it; none yet
  bool plan_area_is_shared_ = false;  // two streams do: then the heap serves them, which can tell
  Bytes absent_bytes_ = 0;
  Peaks used_peaks_;
  Peaks reserved_peaks_;
  ArenaStats counts_;
};

// Visits whole chunks that are free on every stream and have no alias, the highest first, until
// `visit(id, extent)` is false. It may vacate what it is shown.
template <typename Visit>
void Space::ForEachIdleChunk(Visit visit) {
  for (BlockId id = heap_.last(); id != kNoBlock;) {
    const Block block = heap_.block(id);
    id = block.previous;
    if (block.state != BlockState::kFree || block.pool != Pool::kLarge || block.tag != kCleanTag) {
      continue;
    }
    for (Bytes end = block.offset + block.bytes; end > block.offset;) {
      const ChunkId chunk_id = home_->ChunkAt(end - 1);
      const Chunk& chunk = home_->chunk(chunk_id);
      const Extent whole = {chunk.offset, chunk.offset + chunk.bytes};
      end = whole.begin;
      if (whole.begin < block.offset || whole.end > block.offset + block.bytes) continue;
      if (chunk.aliases > 0) continue;
      if (!visit(chunk_id, whole)) return;
    }
  }
}

}  // namespace thimble
