#include "allocator/offline/logs/replay.h"

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "allocator/arena/arena.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

class Replay {
 public:
  explicit Replay(Arena* arena) : arena_(arena) {}

  // kResourceExhausted if it does not fit.
  absl::Status Play(const Event& event) {
    switch (event.kind) {
      case EventKind::kAllocate:
        return Allocate(event);
      case EventKind::kFree:
        return Free(event);
      case EventKind::kStep:
        ++step_;
        arena_->WaitForPlans();
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  absl::Status Request(Bytes bytes, StreamId stream, std::uint64_t key, Address* block) {
    THIMBLE_ASSIGN_OR_RETURN(*block,
                             arena_->Allocate({bytes, /*alignment=*/0, stream, key, step_}));
    ++requests_;
    return absl::OkStatus();
  }

  StreamId last_stream() const { return last_stream_; }
  std::uint64_t requests() const { return requests_; }

 private:
  absl::Status Allocate(const Event& event) {
    Address block;
    THIMBLE_RETURN_IF_ERROR(Request(event.bytes, event.stream, event.key, &block));
    last_stream_ = event.stream;
    if (blocks_.emplace(event.address, block).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "the log has two allocations of %#x without a free between them", event.address));
  }

  // Ignores the free of a block that is older than the log.
  absl::Status Free(const Event& event) {
    const auto found = blocks_.find(event.address);
    if (found == blocks_.end()) return absl::OkStatus();
    const Address block = found->second;
    blocks_.erase(found);
    return arena_->Free(block, event.stream);
  }

  Arena* const arena_;
  absl::flat_hash_map<std::uint64_t, Address> blocks_;  // by their addresses in the log
  StreamId last_stream_{};
  std::uint64_t step_ = 0;
  std::uint64_t requests_ = 0;
};

}  // namespace

absl::StatusOr<ReplayOutcome> ReplayLog(const std::vector<Event>& events,
                                        const ArenaOptions& options, Driver* driver) {
  THIMBLE_ASSIGN_OR_RETURN(const auto arena, Arena::Create(options, driver));
  const auto last = std::find_if(events.rbegin(), events.rend(),
                                 [](const Event& event) { return event.kind == EventKind::kOom; });
  const Event* const failed = last == events.rend() ? nullptr : &*last;
  Replay replay(arena.get());
  ReplayOutcome outcome;
  absl::Status status;
  for (const Event& event : events) {
    if (&event == failed || !status.ok()) break;
    status = replay.Play(event);
  }
  outcome.reached = status.ok();
  if (failed != nullptr) {
    outcome.failed_bytes = failed->bytes;
    Address block;
    if (status.ok()) {
      status = replay.Request(failed->bytes, replay.last_stream(), failed->key, &block);
    }
  }
  if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  outcome.fits = status.ok();
  outcome.requests = replay.requests();
  const ArenaStats stats = arena->GetStats();
  outcome.peak_in_use = stats.peak_in_use;
  outcome.peak_reserved = stats.peak_reserved;
  return outcome;
}

}  // namespace thimble
