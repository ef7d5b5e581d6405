#include "tests/race/watch.h"

#include <chrono>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "allocator/observe/snapshot.h"
#include "allocator/offline/logs/log_reader.h"

namespace thimble {

Watch::Watch(Arena* arena, std::string log)
    : arena_(arena), log_(std::move(log)), thread_([this] { Run(); }) {}

void Watch::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Watch::Expect(bool truth, const char* what) {
  if (!truth && untrue_.empty()) untrue_ = what;
}

void Watch::Run() {
  while (!stop_) {
    const std::uint64_t sample = samples_ + 1;
    CheckStats(arena_->GetStats());
    if (sample % 4 == 0) CheckSnapshot();
    if (sample % 8 == 0) CheckTrim(sample % 16 == 0 ? 0 : 4 * kMiB);
    if (sample % 16 == 0) CheckLog();
    if (sample % 16 == 0) arena_->ResetPeaks();
    arena_->MarkStep();
    samples_ = sample;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Watch::CheckStats(const ArenaStats& stats) {
  Expect(stats.AddsUp(), "the ladder does not add up");
  Expect(stats.in_use <= stats.reserved, "more is in use than is reserved");
  Expect(stats.magazines <= stats.reserved, "more is in magazines than is reserved");
  Expect(stats.live_blocks * kUnit <= stats.reserved, "more blocks are held than bytes for them");
  Expect(stats.reserved <= stats.limit, "more is reserved than the limit allows");
  Expect(stats.largest_free <= stats.free_large + stats.free_small, "a free block is too large");
  Expect(stats.in_use + stats.magazines <= stats.peak_in_use, "more is in use than at the peak");
  Expect(stats.reserved <= stats.peak_reserved, "more is reserved than at the peak");
}

void Watch::CheckSnapshot() {
  const Snapshot snapshot = arena_->GetSnapshot();
  Bytes end = 0;
  Bytes used = 0;
  Bytes vacant = 0;
  bool tiles = true;
  for (const Snapshot::Piece& piece : snapshot.pieces) {
    tiles = tiles && piece.offset == end && piece.bytes > 0;
    end += piece.bytes;
    if (piece.state == Snapshot::State::kUsed) used += piece.bytes;
    if (piece.state == Snapshot::State::kVacant) vacant += piece.bytes;
  }
  CheckStats(snapshot.stats);
  Expect(tiles, "the pieces of a snapshot do not tile the home space");
  Expect(used == snapshot.stats.in_use + snapshot.stats.magazines, "a snapshot miscounts its use");
  Expect(vacant == snapshot.stats.vacant, "a snapshot miscounts what is vacant");
}

void Watch::CheckTrim(Bytes keep) {
  Bytes released = 0;
  Expect(arena_->Trim(keep, &released).ok(), "a trim failed");
  Expect(released <= kTiB, "a trim released more than there is");
}

// What was logged in between is in the file, and no address is allocated twice.
void Watch::CheckLog() {
  Expect(arena_->StartLog(log_).ok(), "a log cannot be started");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Expect(arena_->StopLog().ok(), "a log cannot be stopped");
  const auto events = ReadEventLog(log_);
  Expect(events.ok(), "a log cannot be read");
  if (!events.ok()) return;
  absl::flat_hash_set<std::uint64_t> held;
  for (const Event& event : *events) {
    if (event.kind == EventKind::kAllocate && event.address != 0) {
      Expect(held.insert(event.address).second, "the log allocates an address twice");
    } else if (event.kind == EventKind::kFree) {
      held.erase(event.address);
    }
  }
}

}  // namespace thimble
