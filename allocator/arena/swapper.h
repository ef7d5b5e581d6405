// Moves the bytes of idle blocks to the host when memory is short, and back before their next use.
//
// It joins SwapTable (which blocks may leave, and which is next), HostPool (where they go) and
// Space (the memory behind addresses). It copies without the arena's mutex: meanwhile the state of
// the block (swap_state.h) keeps others away from it, or lets them take it back. A thread of its
// own copies ahead of need (WorkAhead); what it did not foresee, the thread that needs the memory
// or the bytes copies itself.
//
// The goal: as long as swapping can, it keeps reserved memory below the goal, and gives what is
// above it back. By default the goal is the limit; swap_limit sets it, and swap_slowdown searches
// for it during training (goal_search.h).
//
// Turns: ops side by side hold more memory at once than one op. While more than half of the limit
// is in use, ops that take turns run one after the other (turns.h). A turn is a courtesy, not a
// lock: after kTurnPatience an op stops waiting for it, so an op that waits for another one cannot
// block it.
//
// Forks: a child finds swapped bytes at the addresses of their blocks, and no op has the turn.
//
// Watching: nothing leaves, nothing waits and there is no host memory, but uses are recorded, so
// that Outlook() can say what swapping would have done.
//
// The caller holds the arena's mutex (LockRank::kArena); calls that say so release it meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/arena/space.h"
#include "allocator/arena/turns.h"
#include "allocator/base/bytes.h"
#include "allocator/base/event.h"
#include "allocator/base/fork.h"
#include "allocator/base/ids.h"
#include "allocator/base/mutex.h"
#include "allocator/base/stats.h"
#include "allocator/observe/oom_report.h"
#include "allocator/swap/goal_search.h"
#include "allocator/swap/host_pool.h"
#include "allocator/swap/swap_table.h"

namespace thimble {

// Who uses blocks.
struct OpName {
  std::uint64_t key = 0;   // 0: not known
  std::uint64_t step = 0;  // 0: not known
  bool takes_turn = false;
};

class Swapper : private ForkListener {
 public:
  static constexpr std::chrono::milliseconds kTurnPatience{1000};
  // In ops: time for some copies, and not much to hold meanwhile.
  static constexpr std::uint64_t kSoon = 64;

  struct Options {
    Bytes host_limit = 0;         // a positive multiple of the page size
    bool watch = false;           // only
    Bytes goal = 0;               // 0: the limit
    std::uint64_t slowdown = 0;   // ppm of time that may be lost to lower it; 0: it stays
    EventSink* events = nullptr;  // who hears what leaves and comes back; outlives the swapper
  };

  // `space` and `mutex`, which guards it, must outlive the swapper.
  static absl::StatusOr<std::unique_ptr<Swapper>> Create(Space* space, Mutex* mutex,
                                                         const Options& options);

  ~Swapper() override;

  // A block was allocated.
  void Add(Address address, std::uint64_t op, std::uint64_t step);
  // A block is about to be freed: waits for its copies, without the mutex. Remove() follows when it
  // is free.
  void Settle(Address address);
  void Remove(Address address);

  bool Knows(Address address) const { return table_.Find(address) != kNoSwap; }
  // Of these, what is on the host.
  Bytes AbsentBytes(absl::Span<const Address> blocks) const;

  // Addresses that were not added are ignored in what follows.

  // Brings the blocks to the device, where they stay until Unpin(). All or nothing:
  // kResourceExhausted if they do not fit. Releases the mutex to copy or to wait for its turn.
  absl::Status Pin(absl::Span<const Address> blocks, const OpName& op);
  // The end of a use on `stream`; the op also used those in `touched`. kInvalidArgument names a
  // block that was not pinned; all others are unpinned.
  absl::Status Unpin(absl::Span<const Address> blocks, absl::Span<const Address> touched,
                     StreamId stream, bool takes_turn);
  // From now on they may be used unannounced: brings them back, and they stay. Releases the mutex
  // to copy.
  absl::Status Expose(absl::Span<const Address> blocks);

  using Attempt = std::function<absl::Status()>;
  // For a request: calls `attempt` after every block that leaves, until it is not
  // kResourceExhausted; the last time, it may exceed the goal. Releases the mutex.
  absl::Status MakeRoomFor(const Attempt& attempt);

  // Copies one block ahead of need, on a thread of its own: fetches one that is used again soon if
  // there is room, or evicts one that is used again later. False if there is nothing to do now.
  // Releases the mutex.
  bool WorkAhead();
  // Whether WorkAhead() may have something to do.
  bool WantsWork() const { return WantsToComeDown() || WantsToFetch() || RoundIsOver(); }

  // What could leave, and whether that makes room for `request`. O(blocks).
  SwapOutlook Outlook(const Request& request) const;

  SwapStats stats() const;
  void CheckInvariants() const;

 private:
  using Clock = Turns::Clock;

  Swapper(Space* space, Mutex* mutex, std::unique_ptr<HostPool> pool, const Options& options);

  bool IsWatching() const { return pool_ == nullptr; }
  bool IsShort() const { return !IsWatching() && 2 * space_->reserved() > space_->goal(); }
  Bytes HostRoom() const;
  struct Weights;
  Weights Weigh() const;

  void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS override;
  void AfterFork(ForkSide side) ABSL_NO_THREAD_SAFETY_ANALYSIS override;

  void TakeTurn();
  void LeaveTurn();
  StreamPoint PointBehind(StreamId stream, absl::Span<const Address> blocks,
                          absl::Span<const Address> touched) const;
  static absl::Status WaitFor(StreamPoint point, Driver& driver);
  bool WantsToComeDown() const {
    return space_->reserved() > space_->goal() && table_.now() >= come_down_at_;
  }
  bool WantsToFetch() const { return table_.on_host_bytes() > 0 && table_.now() >= look_again_at_; }
  bool RoundIsOver() const { return goal_search_.has_value() && table_.now() >= round_.end; }

  absl::Status MakeRoom(const Attempt& attempt);
  // The idle block that will be used again last leaves. False if there is none, or if the host or
  // the driver refuses.
  bool EvictOne();
  bool Evict(SwapId id);
  enum class Room { kMake, kAsThereIs };
  absl::Status Fetch(SwapId id, Room room);
  bool ComeDown();
  bool FetchAhead();
  void EndRound();
  void CountWait(Clock::time_point since);
  void Report(EventKind kind, const SwapBlock& block, std::uint64_t copy_ns, bool late) const;
  absl::Status CopyWithoutMutex(const SwapBlock& block, CopyDirection direction);
  void WaitForChange();

  Space* const space_;
  Mutex* const mutex_;
  EventSink* const events_;
  const std::unique_ptr<HostPool> pool_;  // null if it watches only
  const Bytes host_limit_;
  SwapTable table_;
  std::condition_variable_any changed_;  // the state of a block, or whose turn it is
  Turns turns_;
  OpTime look_again_at_;  // when something on the host will be wanted soon
  OpTime come_down_at_;   // not before: nothing could be given back
  SwapStats stats_;

  std::optional<GoalSearch> goal_search_;
  struct {
    Clock::time_point begin;
    OpTime end;
    std::uint64_t wait_ns = 0;  // at the beginning
  } round_;
};

}  // namespace thimble
