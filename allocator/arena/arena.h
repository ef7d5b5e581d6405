// The front door of one device. Thread-safe.
//
// A request's way: the calling thread's magazine (small blocks, no mutex) -> best fit -> cached
// stitch -> new memory or a new stitch (Space) -> the OOM ladder:
//
//   1. empty all magazines           small blocks that threads keep
//   2. clean what streams passed     memory freed on other streams
//   3. drop idle aliases             the driver may be short of mappings
//   4. wait for other streams        at most once
//   5. evict idle blocks             those first that are used again last (swapper.h)
//   6. wait for frees                up to ArenaOptions::retry; each round has less time left
//   7. an error that explains
//
// Locks: mutex_ (LockRank::kArena) around everything in Space; magazines have their own.
//
// Debug builds check all invariants after every operation that takes the mutex. Where a check takes
// long, because there are many blocks, checks take half of the time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/arena/magazine.h"
#include "allocator/arena/options.h"
#include "allocator/arena/small_marks.h"
#include "allocator/arena/space.h"
#include "allocator/arena/step_clock.h"
#include "allocator/arena/swapper.h"
#include "allocator/arena/worker.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/base/mutex.h"
#include "allocator/base/stats.h"
#include "allocator/driver/driver.h"
#include "allocator/observe/event_log.h"
#include "allocator/observe/key_names.h"
#include "allocator/observe/oom_report.h"
#include "allocator/observe/snapshot.h"

namespace thimble {

class Arena {
 public:
  // `driver` must outlive the arena. `listener`, null for nobody, hears of every block that is
  // handed out or returned, as long as the arena is used. kInvalidArgument for options that cannot
  // be met; kResourceExhausted if preallocation did not succeed.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(const ArenaOptions& options, Driver* driver,
                                                       EventSink* listener = nullptr);
  // Waits until no stream uses blocks that were freed. None may use the others.
  ~Arena();

  // A block of at least as many bytes, aligned to at most 2 MiB. Zero bytes give Address().
  // kResourceExhausted carries FormatOom().
  absl::StatusOr<Address> Allocate(const Request& request);

  // Address() is accepted. kInvalidArgument, with the reason, for what is not a block in use.
  absl::Status Free(Address address, StreamId stream);

  // Uses of blocks (swapper.h); nothing happens without ArenaOptions::swap or watch.
  absl::Status Pin(absl::Span<const Address> blocks, const OpName& op);
  absl::Status Unpin(absl::Span<const Address> blocks, absl::Span<const Address> touched,
                     StreamId stream, bool takes_turn);
  absl::Status Expose(absl::Span<const Address> blocks);

  absl::StatusOr<BlockInfo> Query(Address address);
  // The block that `inside` points into.
  absl::StatusOr<BlockInfo> QueryInside(Address inside);

  // Gives free chunks back to the driver until at most `keep` bytes are reserved; waits for
  // streams.
  absl::Status Trim(Bytes keep, Bytes* released);

  // The stream is about to be destroyed: waits for what was freed on it and forgets it.
  absl::Status ForgetStream(StreamId stream);

  ArenaStats GetStats();
  void ResetPeaks();

  // Peaks of a span of time, beside those of GetStats() and of other marks, which do not change.
  struct MarkedPeaks {
    Bytes in_use = 0;  // magazines count as in use
    Bytes reserved = 0;
  };
  PeakMark SetPeakMark();
  // kInvalidArgument for a mark that is not set.
  absl::StatusOr<MarkedPeaks> PeaksSince(PeakMark mark);
  absl::Status RemovePeakMark(PeakMark mark);

  // The addresses that are reserved as long as the arena lives: those of home and of aliases. Every
  // block is in there, and nobody else's memory.
  std::array<AddressRange, 2> AddressRanges();

  OomReport LastOom();
  Snapshot GetSnapshot();

  // At most `limit` bytes from now on, of those the arena was made for. kResourceExhausted if more
  // than that are in use.
  absl::Status SetLimit(Bytes limit);

  // Returns when no plan is being made.
  void WaitForPlans() { worker_.WaitUntilIdle(); }

  // The key of a name: for requests, and for whoever reads a report. 0 for "".
  std::uint64_t Remember(absl::string_view name);
  const char* NameOf(std::uint64_t key) const { return names_.NameOf(key); }  // "": not known

  void MarkStep();
  // As EventLog, which begins with what is there now: names, memory, mappings. Files beside it
  // (beside_log.h) are written until StopLog(), also after `most_events`.
  absl::Status StartLog(const std::string& path, std::uint64_t most_events = 0);
  absl::Status StopLog();

  void CheckInvariants();  // O(blocks + mappings)

 private:
  class Operation;

  Arena(const ArenaOptions& options, std::unique_ptr<Space> space,
        std::unique_ptr<SmallMarks> marks, EventSink* listener);

  absl::Status StartSwapping();
  absl::StatusOr<Address> AllocateSlow(const Request& asked);
  absl::Status FreeSlow(Address address, StreamId stream);

  absl::StatusOr<Address> ClimbLadder(Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Address> AllocateEvicting(Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WaitForStreams(std::optional<StreamId> only = std::nullopt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Address> WaitForFrees(Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OutOfMemory(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoRoomFor(absl::Span<const Address> blocks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TrimLocked(Bytes keep, Bytes* released) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EmptyMagazines() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ArenaStats StatsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckInvariantsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckAfterOperation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void LoadPlanFile();
  void SavePlanFile(Learned learned, Bytes chunk_bytes);
  void DraftPlan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the workers' threads.
  void Plan(const std::atomic<bool>& cancel);
  void SwapAhead(const std::atomic<bool>& cancel);
  void ActivatePlan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What is known without the mutex about the small block at `address`; nothing for any other.
  SmallMarks::Mark MarkAt(Address address) const {
    const Bytes offset = address - home_base_;
    if (offset >= home_capacity_ || offset % kUnit != 0) return {};
    return marks_->At(offset);
  }
  bool UseMagazines() const {
    return options_.magazines && waiters_.load(std::memory_order_relaxed) == 0;
  }
  void Report(EventKind kind, std::uint64_t address, Bytes bytes, StreamId stream,
              std::uint64_t key) {
    if (log_.enabled()) log_.Append({kind, address, bytes, stream, key, 0});
    if (listener_ != nullptr) listener_->Append({kind, address, bytes, stream, key, 0});
  }

  // Into the log: what is reserved and stitched; what plans and swapping do; what an op uses.
  void ReportMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportChangedMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportOom(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportPlan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // now and then
  void ReportSwap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // if there was any
  void ReportOp(absl::Span<const Address> blocks, const OpName& op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Into files beside it (beside_log.h).
  void WriteOom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteStats() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // now and then

  const ArenaOptions options_;
  const Address home_base_;
  const Bytes home_capacity_;
  EventSink* const listener_;  // null: nobody
  const std::unique_ptr<SmallMarks> marks_;
  MagazineRack rack_;
  KeyNames names_;
  EventLog log_;
  std::atomic<int> waiters_{0};

  Mutex mutex_{LockRank::kArena};
  std::condition_variable_any freed_;
  const std::unique_ptr<Space> space_ ABSL_PT_GUARDED_BY(mutex_);
  std::unique_ptr<Swapper> swapper_ ABSL_PT_GUARDED_BY(mutex_);  // null with swap:off
  StepClock steps_ ABSL_GUARDED_BY(mutex_);
  std::string log_path_ ABSL_GUARDED_BY(mutex_);  // as it was given; "": nothing is beside it
  std::chrono::steady_clock::time_point next_stats_ ABSL_GUARDED_BY(mutex_);
  Bytes reported_reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t reported_stitches_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t reported_planned_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t reported_plans_ ABSL_GUARDED_BY(mutex_) = 0;  // that came or went
  Request reported_oom_ ABSL_GUARDED_BY(mutex_);  // bytes is 0 if there was none, or it was served
  Bytes reported_swapped_ ABSL_GUARDED_BY(mutex_) = 0;  // both ways
  PeakMark last_mark_ ABSL_GUARDED_BY(mutex_) = 0;
  OomReport last_oom_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point next_check_ ABSL_GUARDED_BY(mutex_);
  Planner::Draft draft_ ABSL_GUARDED_BY(mutex_);  // for the worker
  bool warned_of_plan_file_ = false;              // the worker's: that it cannot be written
  // The first to go.
  Worker worker_{[this](const std::atomic<bool>& cancel) { Plan(cancel); }};
  Worker swap_worker_{[this](const std::atomic<bool>& cancel) { SwapAhead(cancel); }};
};

}  // namespace thimble
