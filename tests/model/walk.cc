#include "tests/model/walk.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "allocator/arena/growth.h"

namespace thimble {
namespace {

std::unique_ptr<HostDriver> OpenHost(const Plan& plan) {
  HostOptions options;
  options.total_bytes = plan.device_bytes;
  options.granularity = kPage;
  auto host = HostDriver::Open(options);
  EXPECT_TRUE(host.ok()) << host.status();
  if (plan.taken_bytes != 0) {
    EXPECT_TRUE((*host)->Create(plan.taken_bytes).ok());
  }
  return *std::move(host);
}

// Wait on a held stream gives up at once, because no other thread of this walk would release it.
DelayOptions NoDelays() {
  DelayOptions options;
  options.calls = {};
  options.fuse_ms = 0;
  return options;
}

// Whole free slots: what stitching can always use.
Bytes WholeSlots(const Snapshot& snapshot) {
  Bytes bytes = 0;
  for (const Snapshot::Piece& piece : snapshot.pieces) {
    if (piece.state != Snapshot::State::kFree) continue;
    const Bytes begin = RoundUp(piece.offset, snapshot.chunk_bytes);
    const Bytes end = RoundDown(piece.offset + piece.bytes, snapshot.chunk_bytes);
    if (begin < end) bytes += end - begin;
  }
  return bytes;
}

// A broken invariant aborts; then this says how to reproduce it.
const RandomWalk* running = nullptr;
void SayWhere(int /*signal*/) {
  if (running == nullptr) return;
  std::fprintf(stderr, "model: seed %llu, operation %llu\n",
               static_cast<unsigned long long>(running->plan().seed),
               static_cast<unsigned long long>(running->operation()));
}

}  // namespace

RandomWalk::RandomWalk(const Plan& plan, const Pace& pace)
    : plan_(plan),
      pace_(pace),
      random_(plan.seed + 1),
      sizes_(plan, &random_),
      host_(OpenHost(plan)),
      driver_(std::make_unique<DelayDriver>(*host_, NoDelays())),
      oracle_(host_.get()),
      held_(plan.streams, false) {
  auto arena = Arena::Create(plan.arena, driver_.get());
  EXPECT_TRUE(arena.ok()) << arena.status();
  arena_ = *std::move(arena);
  home_base_ = arena_->GetSnapshot().home_base;
  home_bytes_ = (plan_.arena.plan ? 4 : 1) * plan_.arena.limit;
  running = this;
  std::signal(SIGABRT, SayWhere);
}

RandomWalk::~RandomWalk() { running = nullptr; }

void RandomWalk::Run(std::uint64_t operations) {
  for (const std::uint64_t last = operation_ + operations; operation_ < last; ++operation_) {
    Step();
    if (!testing::Test::HasFatalFailure()) CheckAtPace();
    if (testing::Test::HasFatalFailure()) FAIL() << plan_ << "\nat operation " << operation_;
  }
}

void RandomWalk::Step() {
  if (operation_ % 2048 == 0) occupancy_ = random_.Uniform(0.2, 1.2);
  const std::size_t draw = random_.Index(1000);
  if (draw < 2) return AllocateNothing();
  if (draw < 4) return AllocateTooMuch();
  if (draw < 12) return FreeBadPointer();
  if (draw < 18) return Query();
  if (draw < 20) return Trim();
  if (draw < 22) return FreeSomeInARow();
  if (draw < 26 && plan_.hold_streams) return HoldOrRelease();
  const double target = occupancy_ * static_cast<double>(plan_.arena.limit);
  const bool below = static_cast<double>(oracle_.in_use()) < target;
  if (oracle_.size() == 0 || Chance(below ? 700 : 300)) return Allocate();
  Free();
}

void RandomWalk::Allocate() {
  const Bytes bytes = sizes_.Next();
  const Bytes alignment = Chance(900) ? random_.Index(2) * kUnit : kUnit << random_.Index(10);
  const Bytes rounded = RoundUp(bytes, kUnit);
  const Bytes padded = rounded + std::max(alignment, kUnit) - kUnit;
  const StreamId stream = AnyStream();
  const auto address = arena_->Allocate({bytes, alignment, stream, /*key=*/serial_});
  if (!address.ok()) return CheckRefusal(address.status(), padded);
  ASSERT_EQ(*address % std::max(alignment, kUnit), 0u);
  const bool stitched = *address - home_base_ >= home_bytes_;
  ASSERT_TRUE(
      oracle_.Add(*address, {rounded, stitched ? padded : rounded, stream, serial_, serial_}));
  ASSERT_TRUE(oracle_.CheckReuse(*address, stream));
  ++serial_;
  ++tally_.allocations;
  if (stitched) ++tally_.stitched;
  NoteAddress(*address);
}

void RandomWalk::AllocateNothing() {
  const auto address = arena_->Allocate({0, 0, AnyStream(), 0});
  ASSERT_TRUE(address.ok()) << address.status();
  ASSERT_EQ(*address, Address());
  ASSERT_TRUE(arena_->Free(*address, AnyStream()).ok());
}

void RandomWalk::AllocateTooMuch() {
  const Bytes bytes = plan_.arena.limit + 1 + random_.Index(~Bytes{0} - plan_.arena.limit - 1);
  const auto address = arena_->Allocate({bytes, 0, AnyStream(), 0});
  ASSERT_EQ(address.status().code(), absl::StatusCode::kResourceExhausted) << address.status();
  ++tally_.refusals;
}

void RandomWalk::Free() {
  const Address address = oracle_.Nth(random_.Index(oracle_.size()));
  // A caller that frees on another stream than the block's has made that stream wait for the
  // block's: so only where that one is not held.
  const StreamId own = oracle_.at(address).stream;
  const StreamId stream = IsHeld(own) || Chance(900) ? own : AnyStream();
  if (IsHeld(stream)) oracle_.StillRunning(address, stream);
  ASSERT_TRUE(oracle_.Remove(address));
  const absl::Status status = arena_->Free(address, stream);
  ASSERT_TRUE(status.ok()) << status;
  last_freed_ = address;
}

// As at the end of a step, so that memory becomes empty now and then.
void RandomWalk::FreeSomeInARow() {
  const std::size_t keep = random_.Index(oracle_.size() + 1);
  while (oracle_.size() > keep) ASSERT_NO_FATAL_FAILURE(Free());
}

void RandomWalk::FreeBadPointer() {
  Address address = last_freed_;
  if (Chance(300)) address = Address(0x1000 + random_.Index(1 << 20));
  if (Chance(500) && oracle_.size() > 0) {
    const Address block = oracle_.Nth(random_.Index(oracle_.size()));
    address = block + 1 + random_.Index(oracle_.at(block).bytes - 1);
  }
  if (!address || oracle_.Holds(address)) return;
  const absl::Status status = arena_->Free(address, AnyStream());
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  ASSERT_FALSE(arena_->Query(address).ok());
  ++tally_.bad_frees;
}

void RandomWalk::Query() {
  if (oracle_.size() == 0) return;
  const Address address = oracle_.Nth(random_.Index(oracle_.size()));
  const Held& held = oracle_.at(address);
  const auto info = arena_->Query(address);
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_GE(info->bytes, held.bytes);
  ASSERT_LE(info->bytes, held.counted);
  // A magazine hands blocks out without passing the key on.
  if (!plan_.arena.magazines || held.bytes > kMagazineLargest) {
    ASSERT_EQ(info->key, held.key);
  }
  ASSERT_TRUE(oracle_.CheckContents(address));
}

void RandomWalk::Trim() {
  const Bytes keep = random_.Index(plan_.arena.limit + 1);
  const Bytes before = arena_->GetStats().reserved;
  Bytes released = 0;
  const absl::Status status = arena_->Trim(keep, &released);
  ASSERT_TRUE(status.ok() || AnyHeld()) << status;
  ASSERT_EQ(arena_->GetStats().reserved + released, before);
  ++tally_.trims;
  tally_.trimmed_bytes += released;
}

bool RandomWalk::AnyHeld() const { return std::count(held_.begin(), held_.end(), true) > 0; }

void RandomWalk::HoldOrRelease() {
  const std::uint64_t stream = random_.Index(plan_.streams);
  if (AnyHeld() && Chance(800)) {  // several at once, but most of the time none
    for (std::uint64_t any = 0; any < plan_.streams; ++any) {
      ASSERT_NO_FATAL_FAILURE(Release(any));
    }
    return;
  }
  driver_->HoldStream(StreamId{stream});
  held_[stream] = true;
  ++tally_.holds;
}

void RandomWalk::Release(std::uint64_t stream) {
  ASSERT_TRUE(oracle_.CheckStillMapped());
  driver_->ReleaseStream(StreamId{stream});
  held_[stream] = false;
  oracle_.Finished(StreamId{stream});
}

// Whether the arena was right to refuse. Where streams run or pieces must be contiguous, it may
// know more than the oracle.
void RandomWalk::CheckRefusal(const absl::Status& status, Bytes padded) {
  ++tally_.refusals;
  digest_ = digest_ * 31 + static_cast<std::uint64_t>(status.code());
  if (AnyHeld()) {
    ASSERT_TRUE(absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) << status;
    return;
  }
  ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
  const bool large_chunks =
      InLargeChunks(plan_.arena.limit, 0, plan_.arena.limit, plan_.arena.chunk_bytes) > 0;
  if (!plan_.arena.stitch || large_chunks) return;
  const Snapshot snapshot = arena_->GetSnapshot();
  const Bytes device_free = driver_->GetMemoryInfo()->free_bytes;
  const Bytes growth = RoundDown(
      std::min(snapshot.stats.limit - snapshot.stats.reserved, device_free), snapshot.chunk_bytes);
  ASSERT_LT(WholeSlots(snapshot) + growth, padded)
      << "this request could have been met: " << status;
}

void RandomWalk::CheckStats() {
  const ArenaStats stats = arena_->GetStats();
  ASSERT_TRUE(stats.AddsUp());
  ASSERT_EQ(stats.in_use, oracle_.in_use());
  ASSERT_EQ(stats.live_blocks, oracle_.size());
  ASSERT_EQ(stats.allocations, tally_.allocations);
  ASSERT_LE(stats.out_of_memory, tally_.refusals);
  ASSERT_LE(stats.reserved, plan_.arena.limit);
  ASSERT_LE(stats.reserved, stats.peak_reserved);
  ASSERT_EQ(stats.spare, 0u);
  ASSERT_EQ(driver_->GetMemoryInfo()->free_bytes + stats.reserved + plan_.taken_bytes,
            plan_.device_bytes);
}

void RandomWalk::CheckAtPace() {
  const auto is_due = [&](std::uint64_t every) { return operation_ % every == every - 1; };
  if (is_due(pace_.stats)) {
    ASSERT_NO_FATAL_FAILURE(CheckStats());
  }
  if (is_due(pace_.invariants)) arena_->CheckInvariants();
  if (is_due(pace_.physical)) {
    ASSERT_TRUE(oracle_.CheckPhysical());
    ASSERT_TRUE(oracle_.CheckAllContents());
    ASSERT_TRUE(oracle_.CheckStillMapped());
  }
}

// The first alias begins at the base of the aliases, which is aligned like the home space.
void RandomWalk::NoteAddress(Address address) {
  Bytes relative = address - home_base_;
  if (relative >= home_bytes_) {
    if (!alias_base_) alias_base_ = address - address % HomeSpace::kAlignment;
    relative = address - alias_base_ + home_bytes_;
  }
  digest_ = (digest_ ^ relative) * 0x100000001b3;
}

void RandomWalk::Finish() {
  SCOPED_TRACE(testing::Message() << plan_ << ", at the end");
  for (std::uint64_t stream = 0; stream < plan_.streams; ++stream) {
    ASSERT_NO_FATAL_FAILURE(Release(stream));
  }
  while (oracle_.size() > 0) ASSERT_NO_FATAL_FAILURE(Free());
  arena_->CheckInvariants();
  Bytes released = 0;
  ASSERT_TRUE(arena_->Trim(0, &released).ok());
  ASSERT_NO_FATAL_FAILURE(CheckStats());
  ASSERT_EQ(arena_->GetStats().reserved, 0u) << "memory that nobody uses was not given back";
  arena_.reset();
  ASSERT_EQ(host_->areas(), 0u) << "addresses are still reserved";
  host_->CheckInvariants();
}

}  // namespace thimble
