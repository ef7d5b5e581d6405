// The part of Arena that tells what it does: statistics, snapshots, the event log.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "allocator/arena/arena.h"
#include "allocator/arena/explain.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"
#include "allocator/observe/beside_log.h"

namespace thimble {
namespace {

absl::Status NoMark(PeakMark mark) {
  return absl::InvalidArgumentError(
      absl::StrCat("peak mark ", mark, " is not set: it was removed, or is another arena's"));
}

}  // namespace

// --- Event log -----------------------------------------------------------------------------------

void Arena::ReportChangedMemory() {
  space_->ReportUnmapped();
  const bool is_old =
      reported_reserved_ != space_->reserved() || reported_stitches_ != space_->counts().stitches;
  if (is_old) ReportMemory();
}

void Arena::ReportMemory() {
  reported_reserved_ = space_->reserved();
  reported_stitches_ = space_->counts().stitches;
  Report(EventKind::kMemory, 0, reported_reserved_, StreamId{}, reported_stitches_);
}

void Arena::ReportLimit() {
  Report(EventKind::kLimit, home_base_.value(), space_->limit(), StreamId{}, space_->chunk_bytes());
}

// Whoever is refused may ask again after every free: that is told once, until it is served.
void Arena::ReportOom(const Request& request) {
  if (request.bytes == reported_oom_.bytes && request.key == reported_oom_.key) return;
  reported_oom_ = request;
  ReportChangedMemory();
  log_.AppendText({EventKind::kOom, 0, request.bytes, StreamId{}, request.key, 0},
                  FormatOom(last_oom_));
}

void Arena::ReportPlan() {
  constexpr std::uint64_t kNowAndThen = 64;  // requests
  const PlanStats stats = space_->plan_stats();
  if (const std::uint64_t plans = stats.plans + stats.plans_retired; plans != reported_plans_) {
    reported_plans_ = plans;
    Report(EventKind::kPlanned, stats.plans, stats.plan_height, StreamId{stats.plans_retired},
           stats.plan_lower_bound);
    space_->ReportPlaces();
  }
  if (stats.plan_requests < reported_planned_ + kNowAndThen) return;
  reported_planned_ = stats.plan_requests;
  Report(EventKind::kPlan, stats.plan_hits, stats.plan_requests, StreamId{}, stats.plan_repeats);
}

void Arena::ReportSwap() {
  if (swapper_ == nullptr) return;
  const SwapStats stats = swapper_->stats();
  if (stats.swap_out_bytes + stats.swap_in_bytes == reported_swapped_) return;
  reported_swapped_ = stats.swap_out_bytes + stats.swap_in_bytes;
  Report(EventKind::kSwap, stats.swapped, stats.swap_out_bytes, StreamId{stats.swap_wait_ns},
         stats.swap_in_bytes);
  Report(EventKind::kCopy, 0, stats.swap_out_ns, StreamId{}, stats.swap_in_ns);
}

void Arena::ReportOp(absl::Span<const Address> blocks, const OpName& op) {
  Report(EventKind::kOp, 0, 0, StreamId{}, op.key);
  for (const Address address : blocks) {
    if (swapper_->Knows(address)) Report(EventKind::kUse, address.value(), 0, StreamId{}, 0);
  }
}

// A file that cannot be written is no reason to fail for another reason than memory.
void Arena::WriteOom() {
  if (log_path_.empty()) return;
  WriteWholeFile(ToJson(last_oom_), PathBeside(log_path_, kOomFile)).IgnoreError();
}

void Arena::WriteStats() {
  constexpr std::chrono::milliseconds kEvery{200};  // as often as people can read them
  if (log_path_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_stats_) return;
  next_stats_ = now + kEvery;
  WriteWholeFile(ToJson(StatsLocked()), PathBeside(log_path_, kNowFile)).IgnoreError();
}

// --- Statistics ----------------------------------------------------------------------------------

ArenaStats Arena::StatsLocked() {
  ArenaStats stats = space_->GetStats();
  std::uint64_t cached_blocks = 0;
  rack_.ForEach([&](Magazine& magazine) {
    const Magazine::Contents contents = magazine.contents();
    stats.magazines += contents.bytes;
    stats.allocations += contents.served;
    cached_blocks += contents.blocks;
  });
  // A block that moved from one magazine to another meanwhile was counted twice.
  stats.magazines = std::min(stats.magazines, space_->heap().used_bytes());
  stats.in_use -= stats.magazines;
  stats.live_blocks -= std::min(cached_blocks, stats.live_blocks);
  if (options_.swap == SwapMode::kAuto) static_cast<SwapStats&>(stats) = swapper_->stats();
  return stats;
}

ArenaStats Arena::GetStats() {
  MutexLock lock(&mutex_);
  return StatsLocked();
}

void Arena::ResetPeaks() {
  MutexLock lock(&mutex_);
  space_->ResetPeaks();
}

PeakMark Arena::SetPeakMark() {
  MutexLock lock(&mutex_);
  const PeakMark mark = ++last_mark_;
  space_->SetPeakMark(mark);
  return mark;
}

absl::StatusOr<Arena::MarkedPeaks> Arena::PeaksSince(PeakMark mark) {
  MutexLock lock(&mutex_);
  const std::optional<Bytes> used = space_->used_peaks().Of(mark);
  if (!used.has_value()) return NoMark(mark);
  return MarkedPeaks{*used, *space_->reserved_peaks().Of(mark)};
}

absl::Status Arena::RemovePeakMark(PeakMark mark) {
  MutexLock lock(&mutex_);
  if (!space_->used_peaks().Of(mark).has_value()) return NoMark(mark);
  space_->RemovePeakMark(mark);
  return absl::OkStatus();
}

OomReport Arena::LastOom() {
  MutexLock lock(&mutex_);
  return last_oom_;
}

std::array<AddressRange, 2> Arena::AddressRanges() {
  MutexLock lock(&mutex_);
  return space_->AddressRanges();
}

Snapshot Arena::GetSnapshot() {
  MutexLock lock(&mutex_);
  Snapshot snapshot = TakeSnapshot(*space_);
  snapshot.stats = StatsLocked();
  return snapshot;
}

absl::Status Arena::StartLog(const std::string& path, std::uint64_t most_events) {
  MutexLock lock(&mutex_);
  THIMBLE_RETURN_IF_ERROR(log_.Start(path, most_events));
  log_path_ = HasFilesBeside(path) ? path : "";
  next_stats_ = {};
  reported_plans_ = reported_planned_ = reported_swapped_ = 0;
  reported_oom_ = {};
  ReportMemory();
  ReportLimit();
  space_->ReportMappings();
  names_.ForEach([this](std::uint64_t key, const std::string& name) {
    log_.AppendText({EventKind::kName, 0, 0, StreamId{}, key, 0}, name);
  });
  return absl::OkStatus();
}

absl::Status Arena::StopLog() {
  MutexLock lock(&mutex_);
  log_path_.clear();
  return log_.Stop();
}

std::uint64_t Arena::Remember(absl::string_view name) {
  const KeyNames::Remembered known = names_.Remember(name);
  if (known.is_new && log_.enabled()) {
    log_.AppendText({EventKind::kName, 0, 0, StreamId{}, known.key, 0},
                    name.substr(0, KeyNames::kLongestName));
  }
  return known.key;
}

void Arena::MarkStep() { Report(EventKind::kStep, 0, 0, StreamId{}, 0); }

}  // namespace thimble
