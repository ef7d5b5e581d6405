#include "allocator/arena/arena.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/arena/explain.h"
#include "allocator/base/check.h"
#include "allocator/base/machine.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

absl::Status BadAlignment(Bytes alignment) {
  return absl::InvalidArgumentError(absl::StrCat("alignment ", alignment,
                                                 " is not a power of two up to ",
                                                 FormatBytes(HomeSpace::kAlignment)));
}

absl::Status FreedTwice(Address address) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%#x is free already: it was freed twice", address.value()));
}

// The chunk size and limit that go with a driver.
absl::StatusOr<SpaceOptions> FitToDriver(const ArenaOptions& options,
                                         const DriverProperties& device) {
  SpaceOptions fitted;
  fitted.stitch = options.stitch;
  fitted.plan = options.plan;
  fitted.swap = options.swap == SwapMode::kAuto;
  fitted.chunk_bytes = std::max(options.chunk_bytes, device.granularity);
  if (!IsPowerOfTwo(fitted.chunk_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk:", options.chunk_bytes, " is not a power of two"));
  }
  const Bytes limit = options.limit == 0 ? device.total_bytes : options.limit;
  if (limit > device.total_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit:", limit, " is more than ", device.name, " has, ", device.total_bytes));
  }
  fitted.limit = RoundDown(limit, fitted.chunk_bytes);
  if (fitted.limit == 0 || fitted.limit > Bins::kLargest) {
    return absl::InvalidArgumentError(absl::StrCat("limit:", limit, " is not between one chunk, ",
                                                   fitted.chunk_bytes, ", and ",
                                                   FormatBytes(Bins::kLargest)));
  }
  return fitted;
}

}  // namespace

// The mutex, for an operation that may change something.
class ABSL_SCOPED_LOCKABLE Arena::Operation {
 public:
  explicit Operation(Arena* arena) ABSL_EXCLUSIVE_LOCK_FUNCTION(arena->mutex_) : arena_(*arena) {
    arena_.mutex_.Lock();
  }
  ~Operation() ABSL_UNLOCK_FUNCTION() {
    if constexpr (kIsDebugBuild) arena_.CheckAfterOperation();
    arena_.mutex_.Unlock();
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  Arena& arena_;
};

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(const ArenaOptions& options, Driver* driver,
                                                     EventSink* listener) {
  THIMBLE_ASSIGN_OR_RETURN(const SpaceOptions fitted, FitToDriver(options, driver->properties()));
  THIMBLE_ASSIGN_OR_RETURN(auto space, Space::Create(driver, fitted));
  THIMBLE_ASSIGN_OR_RETURN(auto marks,
                           SmallMarks::Create(space->home().capacity(), fitted.chunk_bytes));
  if (options.preallocate) THIMBLE_RETURN_IF_ERROR(space->Grow(fitted.limit));
  std::unique_ptr<Arena> arena(new Arena(options, std::move(space), std::move(marks), listener));
  if (options.swap != SwapMode::kOff) THIMBLE_RETURN_IF_ERROR(arena->StartSwapping());
  return arena;
}

Arena::Arena(const ArenaOptions& options, std::unique_ptr<Space> space,
             std::unique_ptr<SmallMarks> marks, EventSink* listener)
    : options_(options),
      home_base_(space->home().base()),
      home_capacity_(space->home().capacity()),
      listener_(listener),
      marks_(std::move(marks)),
      space_(std::move(space)) {
  space_->ReportTo(&log_);
  if (!options_.plan_file.empty()) LoadPlanFile();
}

absl::Status Arena::StartSwapping() {
  const Bytes page = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  const Bytes limit =
      options_.host_limit == 0 ? HalfOfTheMachine() : RoundUp(options_.host_limit, page);
  THIMBLE_ASSIGN_OR_RETURN(
      swapper_, Swapper::Create(space_.get(), &mutex_,
                                {limit, options_.swap == SwapMode::kWatch, options_.swap_limit,
                                 options_.swap_slowdown, &log_}));
  return absl::OkStatus();
}

Arena::~Arena() {
  MutexLock lock(&mutex_);
  // A driver that cannot wait has no streams left.
  WaitForStreams().IgnoreError();
}

// --- Allocate ----------------------------------------------------------------------------------

absl::StatusOr<Address> Arena::Allocate(const Request& request) {
  // bytes - 1 wraps for zero, which is not small then. AllocateSlow() refuses wrong alignments.
  if (request.bytes - 1 < kMagazineLargest && request.alignment <= kUnit &&
      (request.alignment & (request.alignment - 1)) == 0 && UseMagazines()) {
    const int size_class = SizeClassOf(request.bytes);
    if (const Address address = rack_.Mine()->Pop(size_class, request.stream)) {
      marks_->SetInUse(address - home_base_, size_class);
      Report(EventKind::kAllocate, address.value(), request.bytes, request.stream, request.key);
      return address;
    }
  }
  return AllocateSlow(request);
}

absl::StatusOr<Address> Arena::AllocateSlow(const Request& asked) {
  if (asked.bytes == 0) return Address();
  if (asked.alignment > HomeSpace::kAlignment ||
      (asked.alignment != 0 && !IsPowerOfTwo(asked.alignment))) {
    return BadAlignment(asked.alignment);
  }
  Request request = asked;
  request.alignment = std::max(asked.alignment, kUnit);
  const bool may_be_cached =
      options_.magazines && asked.bytes <= kMagazineLargest && request.alignment == kUnit;
  // A cached block has many owners in turn: none of them would be true for long.
  if (may_be_cached) request.key = 0;

  const Operation operation(this);
  // A request beyond the limit, or beyond 2^64 when rounded, is an ordinary out of memory.
  request.bytes = CheckedRoundUp(asked.bytes, kUnit).value_or(RoundDown(asked.bytes, kUnit));
  if (request.bytes > space_->limit()) return OutOfMemory(request);
  if (space_->WantsDraft()) DraftPlan();
  if (space_->PlanIsDue()) ActivatePlan();
  absl::StatusOr<Address> address = space_->Allocate(request);
  if (!address.ok()) {
    address = ClimbLadder(request);
    if (absl::IsResourceExhausted(address.status())) return OutOfMemory(request);
    if (!address.ok()) return address;
  }
  if (swapper_ != nullptr) swapper_->Add(*address, request.key, request.step);
  ArenaStats& counts = space_->counts();
  ++counts.allocations;
  counts.largest_request = std::max(counts.largest_request, request.bytes);
  if (may_be_cached && space_->IsHome(*address)) {
    marks_->SetInUse(*address - home_base_, SizeClassOf(request.bytes));
  }
  if (steps_.Count(request.step)) MarkStep();
  if (log_.enabled()) {
    ReportChangedMemory();
    ReportPlan();
    ReportSwap();
    if (reported_oom_.bytes == request.bytes) reported_oom_ = {};
  }
  Report(EventKind::kAllocate, address->value(), asked.bytes, asked.stream, asked.key);
  WriteStats();
  return address;
}

absl::Status Arena::OutOfMemory(const Request& request) {
  ++space_->counts().out_of_memory;
  space_->Settle();
  last_oom_ = ExplainOom(*space_, swapper_.get(), request);
  last_oom_.step_ns = static_cast<std::uint64_t>(steps_.length().count());
  for (OomReport::Holder& holder : last_oom_.holders) holder.name = names_.NameOf(holder.key);
  if (log_.enabled()) ReportOom(request);
  WriteOom();
  return absl::ResourceExhaustedError(FormatOom(last_oom_));
}

absl::StatusOr<Address> Arena::ClimbLadder(Request& request) {
  EmptyMagazines();
  space_->CleanPassed();
  absl::StatusOr<Address> address = space_->Allocate(request);
  if (address.ok()) return address;
  space_->DropIdle();
  if (absl::Status status = WaitForStreams(); !status.ok()) return status;
  address = AllocateEvicting(request);
  if (address.ok() || options_.retry.count() == 0) return address;
  return WaitForFrees(request);
}

absl::StatusOr<Address> Arena::AllocateEvicting(Request& request) {
  absl::StatusOr<Address> address;
  const auto attempt = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // mutex_ is held
    address = space_->Allocate(request);
    return address.status();
  };
  const absl::Status status = swapper_ == nullptr ? attempt() : swapper_->MakeRoomFor(attempt);
  return status.ok() ? address : status;
}

// Without the mutex: a stream may itself be waiting for a host callback that frees a block here.
absl::Status Arena::WaitForStreams(std::optional<StreamId> only) {
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<StreamPoint> points, space_->RecordStreams());
  Driver& driver = space_->driver();
  absl::Status status;
  mutex_.Unlock();
  for (const StreamPoint& point : points) {
    if (only.has_value() && point.stream != *only) continue;
    status = driver.Wait(point.stream, point.sequence);
    if (!status.ok()) break;
  }
  mutex_.Lock();
  space_->CleanPassed();
  return status;
}

absl::StatusOr<Address> Arena::WaitForFrees(Request& request) {
  const auto deadline = std::chrono::steady_clock::now() + options_.retry;
  waiters_.fetch_add(1, std::memory_order_relaxed);  // from here on, frees bypass the magazines
  absl::StatusOr<Address> address;
  bool expired = false;
  do {
    expired = std::chrono::steady_clock::now() >= deadline;
    EmptyMagazines();
    address = AllocateEvicting(request);
    if (!address.ok() && !expired) mutex_.WaitUntil(freed_, deadline);
  } while (!address.ok() && !expired);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return address;
}

void Arena::EmptyMagazines() {
  rack_.ForEach([this](Magazine& magazine) ABSL_NO_THREAD_SAFETY_ANALYSIS {  // mutex_ is held
    magazine.Empty([this](Address address, StreamId stream) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      // Refused only where a stream must be waited for, to have its tag, and the driver cannot.
      if (!space_->Free(address, stream).ok()) return false;
      marks_->Clear(address - home_base_);
      return true;
    });
  });
}

// --- Free --------------------------------------------------------------------------------------

absl::Status Arena::Free(Address address, StreamId stream) {
  const Bytes offset = address - home_base_;
  if (options_.magazines) {
    const SmallMarks::Mark mark = MarkAt(address);
    if (mark.state == SmallMarks::State::kCached) return FreedTwice(address);
    if (mark.state == SmallMarks::State::kInUse) {
      const auto report = [&] { Report(EventKind::kFree, address.value(), 0, stream, 0); };
      switch (rack_.Mine()->Push(mark.size_class, stream, address, offset, marks_.get(), waiters_,
                                 report)) {
        case Magazine::Pushed::kCached:
          return absl::OkStatus();
        case Magazine::Pushed::kNotInUse:
          return FreedTwice(address);
        case Magazine::Pushed::kNoRoom:
          break;
      }
    }
  }
  return FreeSlow(address, stream);
}

absl::Status Arena::FreeSlow(Address address, StreamId stream) {
  if (!address) return absl::OkStatus();
  const Operation operation(this);
  const Bytes offset = address - home_base_;
  const SmallMarks::Mark mark = MarkAt(address);
  if (mark.state == SmallMarks::State::kCached) return FreedTwice(address);
  if (mark.state == SmallMarks::State::kInUse && !marks_->ClaimForFree(offset, mark.size_class)) {
    return FreedTwice(address);
  }
  if (swapper_ != nullptr) swapper_->Settle(address);
  const absl::Status status = space_->Free(address, stream);
  if (!status.ok()) {
    if (mark.state == SmallMarks::State::kInUse) marks_->SetInUse(offset, mark.size_class);
    return status;
  }
  if (swapper_ != nullptr) swapper_->Remove(address);
  Report(EventKind::kFree, address.value(), 0, stream, 0);
  WriteStats();
  if (waiters_.load(std::memory_order_relaxed) > 0) freed_.notify_all();
  return absl::OkStatus();
}

// --- Swapping ----------------------------------------------------------------------------------

absl::Status Arena::Pin(absl::Span<const Address> blocks, const OpName& op) {
  if (swapper_ == nullptr) return absl::OkStatus();
  const Operation operation(this);
  if (steps_.Count(op.step)) MarkStep();
  if (log_.enabled()) ReportOp(blocks, op);
  const absl::Status status = swapper_->Pin(blocks, op);
  if (log_.enabled()) ReportSwap();
  return absl::IsResourceExhausted(status) ? NoRoomFor(blocks) : status;
}

absl::Status Arena::Unpin(absl::Span<const Address> blocks, absl::Span<const Address> touched,
                          StreamId stream, bool takes_turn) {
  if (swapper_ == nullptr) return absl::OkStatus();
  const Operation operation(this);
  const absl::Status status = swapper_->Unpin(blocks, touched, stream, takes_turn);
  if (swapper_->WantsWork() && swap_worker_.is_idle()) swap_worker_.Wake();
  if (waiters_.load(std::memory_order_relaxed) > 0) freed_.notify_all();
  return status;
}

void Arena::SwapAhead(const std::atomic<bool>& cancel) {
  const Operation operation(this);
  while (!cancel.load() && swapper_->WorkAhead()) {
  }
}

absl::Status Arena::Expose(absl::Span<const Address> blocks) {
  if (swapper_ == nullptr) return absl::OkStatus();
  const Operation operation(this);
  const absl::Status status = swapper_->Expose(blocks);
  return absl::IsResourceExhausted(status) ? NoRoomFor(blocks) : status;
}

// An op wants blocks that do not fit beside what it holds already.
absl::Status Arena::NoRoomFor(absl::Span<const Address> blocks) {
  Request request;
  request.bytes = swapper_->AbsentBytes(blocks);
  return OutOfMemory(request);
}

// --- Everything else ---------------------------------------------------------------------------

absl::StatusOr<BlockInfo> Arena::Query(Address address) {
  MutexLock lock(&mutex_);
  const std::optional<BlockInfo> info = space_->Describe(address);
  if (!info.has_value() || MarkAt(address).state == SmallMarks::State::kCached) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%#x is not a block in use", address.value()));
  }
  return *info;
}

absl::StatusOr<BlockInfo> Arena::QueryInside(Address inside) {
  MutexLock lock(&mutex_);
  const std::optional<BlockInfo> info = space_->DescribeAround(inside);
  if (!info.has_value() || MarkAt(info->address).state == SmallMarks::State::kCached) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%#x is not in a block in use", inside.value()));
  }
  return *info;
}

absl::Status Arena::Trim(Bytes keep, Bytes* released) {
  const Operation operation(this);
  return TrimLocked(keep, released);
}

absl::Status Arena::TrimLocked(Bytes keep, Bytes* released) {
  *released = 0;
  EmptyMagazines();
  THIMBLE_RETURN_IF_ERROR(WaitForStreams());
  const absl::Status status = space_->Trim(keep, released);
  if (log_.enabled()) ReportChangedMemory();
  return status;
}

absl::Status Arena::SetLimit(Bytes limit) {
  const Operation operation(this);
  const Bytes wanted = RoundDown(limit, space_->chunk_bytes());
  if (wanted == 0 || wanted > space_->largest_limit()) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit:", limit, " is not between one chunk, ", space_->chunk_bytes(),
                     ", and what the arena was made for, ", space_->largest_limit()));
  }
  if (space_->home().backed_bytes() > wanted) {
    Bytes released = 0;
    THIMBLE_RETURN_IF_ERROR(TrimLocked(wanted, &released));
  }
  if (const Bytes backed = space_->home().backed_bytes(); backed > wanted) {
    return absl::ResourceExhaustedError(
        absl::StrCat("limit:", limit, " is less than what is in use or cannot be given back now, ",
                     FormatBytes(backed), ": free memory first"));
  }
  space_->set_limit(wanted);
  if (log_.enabled()) ReportLimit();
  return absl::OkStatus();
}

absl::Status Arena::ForgetStream(StreamId stream) {
  const Operation operation(this);
  EmptyMagazines();
  THIMBLE_RETURN_IF_ERROR(WaitForStreams(stream));
  return space_->ForgetStream(stream);
}

void Arena::CheckInvariants() {
  MutexLock lock(&mutex_);
  CheckInvariantsLocked();
}

void Arena::CheckInvariantsLocked() {
  space_->CheckInvariants();
  if (swapper_ != nullptr) swapper_->CheckInvariants();
  THIMBLE_CHECK(StatsLocked().AddsUp(), "the sum of the statistics is not what is reserved");
}

void Arena::CheckAfterOperation() {
  constexpr std::chrono::microseconds kShort{200};
  const auto begin = std::chrono::steady_clock::now();
  if (begin < next_check_) return;
  CheckInvariantsLocked();
  const auto end = std::chrono::steady_clock::now();
  if (end - begin > kShort) next_check_ = end + (end - begin);
}

}  // namespace thimble
