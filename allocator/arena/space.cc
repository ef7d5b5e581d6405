#include "allocator/arena/space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

// Addresses are free of charge: enough for every chunk to be stitched into several blocks' windows,
// and for a full cache of aliases beside them.
Bytes AliasCapacity(const SpaceOptions& options) {
  return 4 * options.limit + Stitcher::kMaxMappings * options.chunk_bytes;
}

// With plans, memory moves to where they need it, and addresses between long-lived blocks may stay
// unused. What is swapped keeps its addresses, too, while others need some.
Bytes HomeCapacity(const SpaceOptions& options) {
  if (options.swap) return 16 * options.limit;
  return options.plan ? 4 * options.limit : options.limit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Space>> Space::Create(Driver* driver, const SpaceOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(auto home,
                           HomeSpace::Create(driver, HomeCapacity(options), options.chunk_bytes));
  THIMBLE_ASSIGN_OR_RETURN(auto aliases, AliasSpace::Create(home.get(), AliasCapacity(options)));
  return std::unique_ptr<Space>(new Space(options, std::move(home), std::move(aliases)));
}

Space::Space(const SpaceOptions& options, std::unique_ptr<HomeSpace> home,
             std::unique_ptr<AliasSpace> aliases)
    : options_(options),
      small_limit_(options.chunk_bytes / 16),
      limit_(options.limit),
      goal_(options.limit),
      home_(std::move(home)),
      aliases_(std::move(aliases)),
      frontier_(&home_->driver()),
      heap_(options.chunk_bytes),
      stitcher_(&heap_, home_.get(), aliases_.get(), &frontier_),
      planner_(options.plan ? std::make_unique<Planner>() : nullptr) {}

// --- Allocate ----------------------------------------------------------------------------------

absl::StatusOr<Address> Space::Allocate(Request& request) {
  request.site = kNoSite;
  if (options_.swap) MakeMovable(&request);
  StreamTag tag = frontier_.LastTagIf(request.stream);
  if (tag == kCleanTag) {
    THIMBLE_ASSIGN_OR_RETURN(tag, TagOf(request.stream));
  }
  if (IsSmall(request.PaddedBytes())) {
    if (const Address address = SmallFit(request, tag)) return address;
  }
  if (planner_ == nullptr) return AllocateLarge(request, tag);

  request.site = planner_->Enter(request.key, request.step, request.bytes);
  if (const Address planned = PlannedFit(request, tag)) return planned;
  absl::StatusOr<Address> address = AllocateLarge(request, tag);
  if (!address.ok()) planner_->Undo(request.site);
  return address;
}

absl::StatusOr<Address> Space::AllocateLarge(const Request& request, StreamTag tag) {
  if (request.long_lived) {
    if (const Address address = LongLivedFit(request, tag)) return address;
  }
  if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;
  absl::StatusOr<Address> address = StitchOrGrow(request, tag);
  if (!address.ok()) {
    // Between other blocks, then: worse for those to come than any other place.
    for (const Pool pool : {Pool::kLongLived, Pool::kSmall}) {
      if (const Address in_slabs = BestFit(pool, request, tag)) return in_slabs;
    }
  }
  return address;
}

Address Space::LongLivedFit(const Request& request, StreamTag tag) {
  BlockId found = heap_.FindFit(Pool::kLongLived, tag, request.PaddedBytes());
  if (found == kNoBlock) found = heap_.RefillResident(request.PaddedBytes(), tag);
  if (found == kNoBlock) return Address();
  // From its end, so that what is left is where the next slabs will be.
  const Bytes begin = AlignDown(heap_.EndOf(found) - request.bytes, request.alignment);
  const BlockId block = heap_.Take(found, {begin, begin + request.bytes});
  return Hand({block, home_->base() + begin}, request);
}

Address Space::SmallFit(const Request& request, StreamTag tag) {
  if (const Address address = BestFit(Pool::kSmall, request, tag)) return address;
  const auto make_slab = [&] {
    const auto growth = TakeFromDriver(options_.chunk_bytes, tag, /*at_end=*/false);
    if (growth.ok()) heap_.MakeSlab(growth->front().begin, tag);
    return growth.ok();
  };
  if (heap_.keeps_slabs()) {
    // A plan has use for what is free: new memory comes first.
    if (!make_slab()) {
      Settle();
      if (!heap_.RefillSmall(tag)) return Address();
    }
  } else if (!heap_.RefillSmall(tag) && !make_slab()) {
    return Address();
  }
  return BestFit(Pool::kSmall, request, tag);
}

inline Address Space::BestFit(Pool pool, const Request& request, StreamTag tag) {
  BlockId found = heap_.FindFit(pool, tag, request.bytes);
  if (found == kNoBlock) return Address();
  Bytes begin = AlignUp(heap_.block(found).offset, request.alignment);
  if (begin + request.bytes > heap_.EndOf(found)) {
    found = heap_.FindFit(pool, tag, request.PaddedBytes());
    if (found == kNoBlock) return Address();
    begin = AlignUp(heap_.block(found).offset, request.alignment);
  }
  const BlockId block = heap_.Take(found, {begin, begin + request.bytes});
  return Hand({block, home_->base() + begin}, request);
}

// The block is the caller's from now on.
inline Address Space::Hand(Placed placed, const Request& request) {
  const Address address(AlignUp(placed.address.value(), request.alignment));
  Block& block = heap_.block(placed.block);
  block.key = request.key;
  block.padding = static_cast<std::uint32_t>(address - placed.address);
  block.site = request.site;
  pointers_.Put(address, placed.block);
  used_peaks_.Raise(used());
  return address;
}

inline Address Space::HandStitched(Placed placed, const Request& request) {
  ++counts_.stitches;
  return Hand(placed, request);
}

Address Space::TakeAt(Bytes offset, const Request& request, StreamTag tag) {
  if (!IsAligned(offset, request.alignment)) return Address();
  const BlockId block = heap_.TakeAt({offset, offset + request.bytes}, tag);
  if (block == kNoBlock) return Address();
  return Hand({block, home_->base() + offset}, request);
}

absl::StatusOr<Address> Space::StitchOrGrow(const Request& request, StreamTag tag) {
  if (heap_.held_bytes() > 0) {
    // What nobody foresaw would take places that others want soon. A little room beside the plan
    // costs less.
    if (GrowWithinSlack(request.PaddedBytes(), tag)) {
      if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;
    }
    Settle();
  }
  if (frontier_.last_tag() > 1) CleanPassed();
  if (!heap_.keeps_slabs()) heap_.DrainSmall(tag);
  if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;

  if (options_.swap) return GrowByMoving(request, tag);
  const Bytes bytes = request.PaddedBytes();
  if (options_.stitch) {
    if (const auto placed = stitcher_.TakeCached(bytes, tag)) {
      ++counts_.stitch_hits;
      return HandStitched(*placed, request);
    }
  }
  if (GrowWithinSlack(bytes, tag)) {
    if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;
  }
  if (!options_.stitch) return GrowContiguously(request, tag);
  // New memory is better than a stitch that wastes some, as long as there is any.
  absl::StatusOr<Address> address = BuildOrGrow(request, tag, Waste::kLittle);
  if (absl::IsResourceExhausted(address.status())) {
    address = BuildOrGrow(request, tag, Waste::kAny);
  }
  return address;
}

// Stitches what is free; if that is too little, takes what is missing from the driver and tries
// once more. Growth that did not help is given back (P4).
absl::StatusOr<Address> Space::BuildOrGrow(const Request& request, StreamTag tag, Waste waste) {
  const Bytes bytes = request.PaddedBytes();
  THIMBLE_ASSIGN_OR_RETURN(Stitcher::Outcome outcome, stitcher_.Build(bytes, tag, waste));
  if (outcome.placed.block != kNoBlock) return HandStitched(outcome.placed, request);
  THIMBLE_ASSIGN_OR_RETURN(const Growth growth,
                           TakeFromDriver(outcome.shortfall, tag, /*at_end=*/false));
  if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;
  const absl::StatusOr<Stitcher::Outcome> second = stitcher_.Build(bytes, tag, Waste::kAny);
  if (second.ok() && second->placed.block != kNoBlock) return HandStitched(second->placed, request);
  UndoGrowth(growth);
  return second.ok() ? absl::ResourceExhaustedError("free memory is not contiguous")
                     : second.status();
}

// Without stitching, scattered holes are of no use to a block that must be in one piece.
absl::StatusOr<Address> Space::GrowContiguously(const Request& request, StreamTag tag) {
  const Bytes shortfall = ContiguousShortfall(request.PaddedBytes(), tag);
  const bool at_end = shortfall <= home_->capacity() - heap_.end();
  THIMBLE_ASSIGN_OR_RETURN(const Growth growth, TakeFromDriver(shortfall, tag, at_end));
  if (const Address address = BestFit(Pool::kLarge, request, tag)) return address;
  UndoGrowth(growth);
  return absl::ResourceExhaustedError("free memory is not contiguous");
}

// --- Free --------------------------------------------------------------------------------------

absl::Status Space::Free(Address address, StreamId stream) {
  StreamTag tag = frontier_.LastTagIf(stream);
  if (tag == kCleanTag) {
    THIMBLE_ASSIGN_OR_RETURN(tag, TagOf(stream));
  }
  BlockId id = pointers_.Take(address);
  if (id == kNoBlock) return NotABlock(address);
  if (!IsInPlanArea(id) && heap_.block(id).absent) {
    FreeAbsent(id);
    return absl::OkStatus();
  }
  if (IsInPlanArea(id)) {
    if (tag == plan_area_tag_) {
      LeavePlanArea(SiteInPlanArea(id));
      return absl::OkStatus();
    }
    pointers_.Put(address, id);
    SharePlanArea();
    id = pointers_.Take(address);
  }
  const Epoch epoch = frontier_.NoteFree(tag);
  if (planner_ != nullptr && heap_.block(id).site != kNoSite) planner_->Leave(heap_.block(id).site);
  if (heap_.block(id).alias == kNoAlias) {
    heap_.Release(id, tag, epoch);
  } else {
    stitcher_.Release(id, tag, epoch);
  }
  return absl::OkStatus();
}

// --- Streams -----------------------------------------------------------------------------------

absl::StatusOr<StreamTag> Space::TagOf(StreamId stream) {
  if (const std::optional<StreamTag> tag = frontier_.TagOf(stream)) return *tag;
  // More streams than tags: what the first one freed must pass before its tag can be another's.
  THIMBLE_RETURN_IF_ERROR(Retire(/*tag=*/1));
  return *frontier_.TagOf(stream);
}

absl::Status Space::ForgetStream(StreamId stream) {
  const std::optional<StreamTag> tag = frontier_.FindTag(stream);
  return tag ? Retire(*tag) : absl::OkStatus();
}

absl::Status Space::Retire(StreamTag tag) {
  Settle();
  if (plan_area_tag_ == tag) plan_area_tag_ = kCleanTag;
  THIMBLE_RETURN_IF_ERROR(frontier_.Wait(tag));
  heap_.Clean(tag, frontier_.passed(tag));
  frontier_.Retire(tag);
  return absl::OkStatus();
}

void Space::CleanPassed() {
  for (int tag = 1; tag <= frontier_.last_tag(); ++tag) {
    const StreamTag stream = static_cast<StreamTag>(tag);
    if (!heap_.HasTagged(stream)) continue;
    frontier_.Poll(stream).IgnoreError();  // an error means: not passed
    heap_.Clean(stream, frontier_.passed(stream));
  }
}

// --- Looking -----------------------------------------------------------------------------------

Bytes Space::LargestStitch(StreamId stream) {
  const std::optional<StreamTag> tag = frontier_.TagOf(stream);
  return stitcher_.LargestStitch(tag.value_or(kCleanTag));
}

Bytes Space::Shortfall(const Request& request, Placing placing) {
  const StreamTag tag = frontier_.TagOf(request.stream).value_or(kCleanTag);
  const Bytes bytes = request.PaddedBytes();
  if (placing == Placing::kMoved) {
    Bytes idle = 0;
    ForEachIdleChunk([&](ChunkId, Extent chunk) {
      idle += chunk.bytes();
      return true;
    });
    const Bytes chunks = AlignUp(request.bytes, options_.chunk_bytes);
    return chunks - std::min(chunks, idle);
  }
  if (heap_.FindFit(Pool::kLarge, tag, bytes) != kNoBlock) return 0;
  return placing == Placing::kWhole ? ContiguousShortfall(bytes, tag)
                                    : stitcher_.Shortfall(bytes, tag);
}

void Space::ResetPeaks() {
  used_peaks_.ResetOverall(used());
  reserved_peaks_.ResetOverall(reserved());
}

void Space::SetPeakMark(PeakMark mark) {
  used_peaks_.Set(mark, used());
  reserved_peaks_.Set(mark, reserved());
}

void Space::RemovePeakMark(PeakMark mark) {
  used_peaks_.Remove(mark);
  reserved_peaks_.Remove(mark);
}

}  // namespace thimble
