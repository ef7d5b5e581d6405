#include "allocator/arena/swapper.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/base/status_macros.h"

// Whoever calls holds the mutex, which these functions know by a pointer: the analysis cannot tell
// that it is the arena's.
#define THIMBLE_HOLDS_MUTEX ABSL_NO_THREAD_SAFETY_ANALYSIS

namespace thimble {

absl::StatusOr<std::unique_ptr<Swapper>> Swapper::Create(Space* space, Mutex* mutex,
                                                         const Options& options) {
  std::unique_ptr<HostPool> pool;
  if (!options.watch) {
    THIMBLE_ASSIGN_OR_RETURN(pool, HostPool::Create(options.host_limit, &space->driver()));
  }
  std::unique_ptr<Swapper> swapper(new Swapper(space, mutex, std::move(pool), options));
  AddForkListener(LockRank::kArena, swapper.get());
  return swapper;
}

Swapper::~Swapper() { RemoveForkListener(this); }

void Swapper::BeforeFork() {
  mutex_->Lock();
  table_.ForEachOnHost([this](const SwapBlock& block) {
    space_->driver().LeaveToChild(block.movable.begin, block.host, block.movable.bytes());
  });
}

void Swapper::AfterFork(ForkSide side) {
  if (side == ForkSide::kChild) turns_.Clear();
  mutex_->Unlock();
}

Swapper::Swapper(Space* space, Mutex* mutex, std::unique_ptr<HostPool> pool, const Options& options)
    : space_(space),
      mutex_(mutex),
      events_(options.events),
      pool_(std::move(pool)),
      host_limit_(options.host_limit) {
  if (options.goal > 0) space_->set_goal(RoundDown(options.goal, space_->chunk_bytes()));
  if (options.slowdown > 0) goal_search_.emplace(options.slowdown, space_->limit());
  round_.begin = Clock::now();
}

void Swapper::Add(Address address, std::uint64_t op, std::uint64_t step) {
  const AddressRange movable =
      IsWatching() ? space_->AddressesOf(address) : space_->MovableOf(address);
  if (movable.bytes() > 0) table_.Add(address, movable, op, step);
}

void Swapper::Settle(Address address) {
  for (SwapId id = table_.Find(address); id != kNoSwap; id = table_.Find(address)) {
    const SwapBlock& block = table_.block(id);
    if (block.state == SwapState::kEvicting) table_.CancelEvict(id);
    if (!block.copying && block.state != SwapState::kFetching) return;
    WaitForChange();
  }
}

void Swapper::Remove(Address address) {
  const SwapId id = table_.Find(address);
  if (id == kNoSwap) return;
  const SwapBlock& block = table_.block(id);
  if (block.state == SwapState::kOnHost) pool_->Give(block.host, block.movable.bytes());
  table_.Remove(id);
}

Bytes Swapper::AbsentBytes(absl::Span<const Address> blocks) const {
  Bytes bytes = 0;
  for (const Address address : blocks) {
    const SwapId id = table_.Find(address);
    if (id != kNoSwap && !table_.IsThere(id)) bytes += table_.block(id).movable.bytes();
  }
  return bytes;
}

// --- Uses ----------------------------------------------------------------------------------------

absl::Status Swapper::Pin(absl::Span<const Address> blocks, const OpName& op) {
  if (op.takes_turn) TakeTurn();
  const NextUse::Use first = table_.BeginOp(op.key, op.step, blocks.size());
  bool all_there = true;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const SwapId id = table_.Find(blocks[i]);
    if (id == kNoSwap) continue;
    if (table_.block(id).state == SwapState::kEvicting) table_.CancelEvict(id);
    table_.Pin(id, first == NextUse::kUnknown ? first : first + static_cast<NextUse::Use>(i));
    all_there = all_there && table_.IsThere(id);
  }
  if (all_there) return absl::OkStatus();
  const Clock::time_point begin = Clock::now();
  absl::Status status;
  for (const Address address : blocks) {
    const SwapId id = table_.Find(address);
    if (id != kNoSwap && status.ok()) status = Fetch(id, Room::kMake);
  }
  CountWait(begin);
  if (status.ok()) return status;
  for (const Address address : blocks) table_.Unpin(address);
  if (op.takes_turn) LeaveTurn();
  return status;
}

absl::Status Swapper::Unpin(absl::Span<const Address> blocks, absl::Span<const Address> touched,
                            StreamId stream, bool takes_turn) {
  absl::Status status;
  const StreamPoint used = PointBehind(stream, blocks, touched);
  for (const Address address : touched) {
    if (const SwapId id = table_.Find(address); id != kNoSwap) table_.Touch(id, used);
  }
  for (const Address address : blocks) {
    if (table_.EndUse(address, used)) continue;
    status = absl::InvalidArgumentError(
        absl::StrFormat("%#x is not pinned: unpin what was pinned, once", address.value()));
  }
  if (takes_turn) LeaveTurn();
  return status;
}

// A point is recorded only where it may be needed soon.
StreamPoint Swapper::PointBehind(StreamId stream, absl::Span<const Address> blocks,
                                 absl::Span<const Address> touched) const {
  const auto is_known = [this](Address address) { return table_.Find(address) != kNoSwap; };
  StreamPoint point = {stream, StreamSeq()};
  if (!IsShort()) return point;
  if (std::any_of(blocks.begin(), blocks.end(), is_known) ||
      std::any_of(touched.begin(), touched.end(), is_known)) {
    point.sequence = space_->driver().Record(stream).value_or(StreamSeq());
  }
  return point;
}

absl::Status Swapper::Expose(absl::Span<const Address> blocks) {
  THIMBLE_RETURN_IF_ERROR(Pin(blocks, OpName()));
  for (const Address address : blocks) {
    if (const SwapId id = table_.Find(address); id != kNoSwap) table_.Expose(id);
    table_.Unpin(address);
  }
  return absl::OkStatus();
}

void Swapper::TakeTurn() THIMBLE_HOLDS_MUTEX {
  const Turns::Thread self = std::this_thread::get_id();
  if (turns_.IsTurnOf(self)) {
    turns_.BeginInner();
    return;
  }
  if (!IsShort()) return;
  Clock::time_point now = Clock::now();
  const Clock::time_point deadline = now + kTurnPatience;
  turns_.Ask(self, now);
  while (now < deadline && now < turns_.MayBeginAt(self)) {
    mutex_->WaitUntil(changed_, std::min(deadline, turns_.MayBeginAt(self)));
    now = Clock::now();
  }
  if (now >= turns_.MayBeginAt(self)) {
    turns_.Begin(self, now);
  } else {
    turns_.GiveUp(self);
    changed_.notify_all();
  }
}

void Swapper::LeaveTurn() {
  if (turns_.End(std::this_thread::get_id(), Clock::now())) changed_.notify_all();
}

// --- Copies --------------------------------------------------------------------------------------

absl::Status Swapper::MakeRoomFor(const Attempt& attempt) {
  const Clock::time_point begin = Clock::now();
  const absl::Status status = MakeRoom(attempt);
  CountWait(begin);
  return status;
}

absl::Status Swapper::MakeRoom(const Attempt& attempt) {
  absl::Status status = attempt();
  while (absl::IsResourceExhausted(status) && EvictOne()) status = attempt();
  if (absl::IsResourceExhausted(status) && space_->goal() < space_->limit()) {
    space_->set_may_exceed_goal(true);
    status = attempt();
    space_->set_may_exceed_goal(false);
  }
  return status;
}

bool Swapper::EvictOne() {
  if (IsWatching()) return false;
  const SwapId id = table_.FarthestNextUse();
  return id != kNoSwap && Evict(id);
}

bool Swapper::Evict(SwapId id) {
  const Bytes bytes = table_.block(id).movable.bytes();
  void* const host = pool_->Take(bytes);
  if (host == nullptr) {
    ++stats_.swap_host_full;
    return false;
  }
  table_.BeginEvict(id, host);
  const std::uint64_t copied_ns = stats_.swap_out_ns;
  absl::Status status = CopyWithoutMutex(table_.block(id), CopyDirection::kToHost);
  table_.EndCopy(id);
  const bool is_wanted = table_.block(id).state == SwapState::kEvicting;
  if (is_wanted && status.ok()) status = space_->Evict(table_.block(id).address);
  if (is_wanted && status.ok()) {
    table_.EndEvict(id);
    stats_.swap_out_bytes += bytes;
    look_again_at_ = OpTime();
    Report(EventKind::kEvict, table_.block(id), stats_.swap_out_ns - copied_ns, /*late=*/false);
  } else {
    if (is_wanted) table_.CancelEvict(id);
    pool_->Give(host, bytes);
  }
  changed_.notify_all();
  return status.ok();
}

// Brings the block back, or waits for whoever does.
absl::Status Swapper::Fetch(SwapId id, Room room) {
  while (table_.block(id).copying || table_.block(id).state == SwapState::kFetching) {
    WaitForChange();
  }
  if (table_.IsThere(id)) return absl::OkStatus();
  table_.BeginFetch(id);
  const Address address = table_.block(id).address;
  const auto fetch = [&] { return space_->Fetch(address); };
  absl::Status status = room == Room::kMake ? MakeRoom(fetch) : fetch();
  const std::uint64_t copied_ns = stats_.swap_in_ns;
  if (status.ok()) status = CopyWithoutMutex(table_.block(id), CopyDirection::kToDevice);
  const SwapBlock& block = table_.block(id);
  if (status.ok()) {
    void* const host = block.host;
    table_.EndFetch(id);
    pool_->Give(host, block.movable.bytes());
    stats_.swap_in_bytes += block.movable.bytes();
    if (room == Room::kMake) stats_.swap_late_bytes += block.movable.bytes();
    Report(EventKind::kFetch, block, stats_.swap_in_ns - copied_ns, room == Room::kMake);
  } else {
    table_.CancelFetch(id);
  }
  changed_.notify_all();
  return status;
}

bool Swapper::WorkAhead() {
  if (RoundIsOver()) EndRound();
  if (WantsToComeDown()) {
    if (ComeDown()) return true;
    come_down_at_ = table_.now() + kSoon;
  }
  if (WantsToFetch()) {
    if (FetchAhead()) return true;
    look_again_at_ = std::max(look_again_at_, table_.now() + 1);
  }
  return false;
}

// Whether something was given back or evicted.
bool Swapper::ComeDown() {
  Bytes released = 0;
  space_->CleanPassed();
  // A driver that takes nothing back now may do so later.
  space_->Trim(space_->goal(), &released).IgnoreError();
  return released > 0 || EvictOne();
}

bool Swapper::FetchAhead() {
  const SwapId wanted = table_.NearestNextUse();
  if (wanted == kNoSwap) return false;
  const OpTime when = table_.NextUseOf(wanted);
  if (when > table_.now() + kSoon) {
    look_again_at_ = when - kSoon;
    return false;
  }
  if (space_->room() >= table_.block(wanted).movable.bytes()) {
    return Fetch(wanted, Room::kAsThereIs).ok();
  }
  const SwapId other = table_.FarthestNextUse();
  return other != kNoSwap && table_.NextUseOf(other) > when + kSoon && Evict(other);
}

void Swapper::EndRound() {
  constexpr std::uint64_t kShortest = 256;
  constexpr std::chrono::milliseconds kBriefest{100};
  const Clock::time_point now = Clock::now();
  round_.end = table_.now() + kShortest;
  if (now - round_.begin < kBriefest) return;
  GoalSearch::Round round;
  round.elapsed_ns = static_cast<std::uint64_t>((now - round_.begin).count());
  round.waited_ns = stats_.swap_wait_ns - round_.wait_ns;
  round.reserved = space_->reserved();
  space_->set_goal(RoundUp(goal_search_->After(round), space_->chunk_bytes()));
  const std::uint64_t steps = 2 * table_.TakeLongestGap();
  round_ = {now, table_.now() + std::max(steps, kShortest), stats_.swap_wait_ns};
  come_down_at_ = OpTime();
}

void Swapper::CountWait(Clock::time_point since) {
  const Clock::duration waited = Clock::now() - since;
  stats_.swap_wait_ns += static_cast<std::uint64_t>(waited.count());
  turns_.Exclude(std::this_thread::get_id(), waited);
}

// Waits for the end of the stream if the point was not recorded.
absl::Status Swapper::WaitFor(StreamPoint point, Driver& driver) {
  if (point.sequence == StreamSeq()) {
    THIMBLE_ASSIGN_OR_RETURN(point.sequence, driver.Record(point.stream));
  }
  return driver.Wait(point.stream, point.sequence);
}

// What is copied out has been used on its stream; what is copied in nobody uses yet.
absl::Status Swapper::CopyWithoutMutex(const SwapBlock& block,
                                       CopyDirection direction) THIMBLE_HOLDS_MUTEX {
  const AddressRange part = block.movable;
  void* const host = block.host;
  const StreamPoint used = block.used;
  Driver& driver = space_->driver();
  mutex_->Unlock();
  absl::Status status;
  if (direction == CopyDirection::kToHost) status = WaitFor(used, driver);
  const Clock::time_point begin = Clock::now();
  if (status.ok()) status = driver.Copy(part.begin, host, part.bytes(), direction);
  const auto took = static_cast<std::uint64_t>((Clock::now() - begin).count());
  mutex_->Lock();
  (direction == CopyDirection::kToHost ? stats_.swap_out_ns : stats_.swap_in_ns) += took;
  return status;
}

void Swapper::Report(EventKind kind, const SwapBlock& block, std::uint64_t copy_ns,
                     bool late) const {
  if (events_ == nullptr || !events_->enabled()) return;
  space_->ReportUnmapped();
  events_->Append(
      {kind, block.address.value(), block.movable.bytes(), StreamId{copy_ns}, late ? 1U : 0U, 0});
}

void Swapper::WaitForChange() THIMBLE_HOLDS_MUTEX { mutex_->Wait(changed_); }

SwapStats Swapper::stats() const {
  SwapStats stats = stats_;
  stats.swapped = table_.on_host_bytes();
  stats.swap_goal = space_->goal();
  return stats;
}

void Swapper::CheckInvariants() const { table_.CheckInvariants(); }

}  // namespace thimble
