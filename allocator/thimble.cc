// The C interface over Arena: turns statuses into codes and texts, and lets no exception out.
#include "allocator/thimble.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/arena/arena.h"
#include "allocator/arena/options.h"
#include "allocator/base/stable_hash.h"
#include "allocator/base/status_macros.h"
#include "allocator/driver/cuda_driver.h"
#include "allocator/driver/driver.h"
#include "allocator/driver/host_driver.h"
#include "allocator/observe/log_summary.h"
#include "allocator/observe/swap_summary.h"
#include "allocator/plan/csv.h"
#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "allocator/swap/settings.h"

struct thimble_arena {
  std::string options;                      // effective ones
  std::unique_ptr<thimble::Driver> driver;  // outlives arena: declared before it
  std::unique_ptr<thimble::Arena> arena;
};

namespace thimble {
namespace {

// A pointer, so that this library needs only eight bytes of thread-local storage for it; a plain
// one, so that even destructors that run after ours can use it.
thread_local std::string* last_error = nullptr;

struct AtThreadEnd {
  void Expect() {}  // makes the thread-local object, and with it its end
  ~AtThreadEnd() { delete std::exchange(last_error, nullptr); }
};
thread_local AtThreadEnd at_thread_end;  // outside of functions: its guard is one byte, not eight

thimble_status Fail(thimble_status code, absl::string_view text) {
  at_thread_end.Expect();
  try {
    if (last_error == nullptr) last_error = new std::string;
    last_error->assign(text.data(), text.size());
  } catch (const std::bad_alloc&) {
    // No memory even for the message: the code must do.
    if (last_error != nullptr) last_error->clear();
  }
  return code;
}

thimble_status FromStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return THIMBLE_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return Fail(THIMBLE_INVALID_ARGUMENT, status.message());
    case absl::StatusCode::kResourceExhausted:
      return Fail(THIMBLE_OUT_OF_MEMORY, status.message());
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
      return Fail(THIMBLE_UNAVAILABLE, status.message());
    default:
      return Fail(THIMBLE_INTERNAL, status.message());
  }
}

thimble_status NullArgument(const char* name) {
  return Fail(THIMBLE_INVALID_ARGUMENT, std::string(name) + " is null");
}

// Runs `body`, which returns absl::Status. The only exceptions the library knows are the system's.
template <typename Body>
thimble_status Guard(Body body) {
  try {
    return FromStatus(body());
  } catch (const std::bad_alloc&) {
    return Fail(THIMBLE_INTERNAL, "the host is out of memory");
  } catch (const std::exception& error) {
    return Fail(THIMBLE_INTERNAL, error.what());
  }
}

// Copies as much of `full` as the caller's struct has room for.
template <typename Struct>
absl::Status CopyOut(Struct full, Struct* out) {
  const std::size_t size = out->struct_size;
  if (size < sizeof(std::size_t)) {
    return absl::InvalidArgumentError("struct_size is not set: set it to sizeof before the call");
  }
  full.struct_size = size;
  std::memcpy(out, &full, std::min(size, sizeof(Struct)));
  return absl::OkStatus();
}

Bytes HalfOfTheMachine() {
  const Bytes pages = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES));
  return RoundDown(pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE)) / 2, kGiB) + kGiB;
}

absl::StatusOr<std::unique_ptr<Driver>> OpenDriver(Options* options) {
  if (options->device == Options::kCpu) {
    if (options->memory == 0) options->memory = HalfOfTheMachine();
    HostOptions host;
    host.total_bytes = options->memory;
    host.granularity = std::min(host.granularity, options->arena.chunk_bytes);
    return HostDriver::Open(host);
  }
  CudaOptions cuda;
  cuda.ordinal = options->device;
  cuda.peers = options->peers;
  if (!options->driver.empty()) cuda.library = options->driver;
  return CudaDriver::Open(cuda);
}

absl::StatusOr<std::unique_ptr<thimble_arena>> CreateArena(const char* text) {
  THIMBLE_ASSIGN_OR_RETURN(Options options, ParseOptions(text == nullptr ? "" : text));
  auto created = std::make_unique<thimble_arena>();
  THIMBLE_ASSIGN_OR_RETURN(created->driver, OpenDriver(&options));
  THIMBLE_ASSIGN_OR_RETURN(created->arena, Arena::Create(options.arena, created->driver.get()));
  if (!options.log.empty()) {
    THIMBLE_RETURN_IF_ERROR(created->arena->StartLog(options.log, options.log_events));
  }
  options.arena.limit = created->arena->GetStats().limit;
  created->options = FormatOptions(options);
  return created;
}

// Few enough for the stack, mostly.
absl::InlinedVector<Address, 16> Addresses(const void* const* blocks, size_t count) {
  absl::InlinedVector<Address, 16> addresses(count);
  std::transform(blocks, blocks + count, addresses.begin(),
                 [](const void* block) { return reinterpret_cast<Address>(block); });
  return addresses;
}

bool TakesTurn(unsigned flags) { return (flags & THIMBLE_OP_TAKES_TURN) != 0; }

thimble_stats ToC(const ArenaStats& stats) {
  thimble_stats out = {};
  out.in_use = stats.in_use;
  out.magazines = stats.magazines;
  out.free_small = stats.free_small;
  out.free_large = stats.free_large;
  out.spare = stats.spare;
  out.reserved = stats.reserved;
  out.vacant = stats.vacant;
  out.limit = stats.limit;
  out.peak_in_use = stats.peak_in_use;
  out.peak_reserved = stats.peak_reserved;
  out.largest_free = stats.largest_free;
  out.largest_request = stats.largest_request;
  out.alias_active = stats.alias_active;
  out.alias_idle = stats.alias_idle;
  out.live_blocks = stats.live_blocks;
  out.allocations = stats.allocations;
  out.stitches = stats.stitches;
  out.stitch_hits = stats.stitch_hits;
  out.out_of_memory = stats.out_of_memory;
  out.plans = stats.plan.plans;
  out.plans_retired = stats.plan.retired;
  out.plan_seats = stats.plan.seats;
  out.plan_requests = stats.plan.requests;
  out.plan_hits = stats.plan.hits;
  out.plan_repairs = stats.plan.repairs;
  out.plan_misses = stats.plan.misses;
  out.plan_homeless = stats.plan.homeless;
  out.plan_height = stats.plan.height;
  out.plan_lower_bound = stats.plan.lower_bound;
  out.plan_repeats = stats.plan.repeats;
  out.plans_stale = stats.plan.stale;
  out.swapped = stats.swap.on_host;
  out.swap_out_bytes = stats.swap.out_bytes;
  out.swap_in_bytes = stats.swap.in_bytes;
  out.swap_late_bytes = stats.swap.late_bytes;
  out.swap_host_full = stats.swap.host_full;
  return out;
}

thimble_oom ToC(const OomReport& report) {
  thimble_oom out = {};
  out.kind = static_cast<thimble_oom_kind>(report.kind);
  out.requested = report.requested;
  out.missing = report.missing;
  out.in_use = report.in_use;
  out.free = report.free;
  out.reserved = report.reserved;
  out.limit = report.limit;
  out.largest_free = report.largest_free;
  out.largest_stitchable = report.largest_stitchable;
  out.device_free = report.device_free;
  out.holders = static_cast<std::uint32_t>(report.holders.size());
  static_assert(OomReport::kMaxHolders == sizeof(out.holder_key) / sizeof(out.holder_key[0]));
  for (std::size_t i = 0; i < report.holders.size(); ++i) {
    out.holder_key[i] = report.holders[i].key;
    out.holder_bytes[i] = report.holders[i].bytes;
    out.holder_blocks[i] = report.holders[i].blocks;
  }
  return out;
}

thimble_plan_info ToC(const plan::Plan& plan) {
  thimble_plan_info out = {};
  out.buffers = plan.offsets.size();
  out.height = static_cast<uint64_t>(plan.height);
  out.lower_bound = static_cast<uint64_t>(plan.lower_bound);
  return out;
}

thimble_swap_info ToC(const SwapSummary& summary) {
  thimble_swap_info out = {};
  out.peak_before = static_cast<uint64_t>(summary.peak_before);
  out.peak_after = static_cast<uint64_t>(summary.schedule.peak_bytes);
  out.slowdown_ppm = static_cast<uint64_t>(summary.slowdown);
  out.bytes_out = static_cast<uint64_t>(summary.schedule.bytes_out);
  out.bytes_in = static_cast<uint64_t>(summary.schedule.bytes_in);
  out.swaps = summary.schedule.swaps.size();
  out.peak_doa = static_cast<uint64_t>(summary.autoswap[0]);
  out.peak_aoa = static_cast<uint64_t>(summary.autoswap[1]);
  out.peak_wdoa = static_cast<uint64_t>(summary.autoswap[2]);
  out.peak_swdoa = static_cast<uint64_t>(summary.autoswap[3]);
  summary.schedule.policy.copy(out.policy, sizeof(out.policy) - 1);
  return out;
}

thimble_log_info ToC(const LogSummary& summary) {
  thimble_log_info out = {};
  out.events = summary.events;
  out.allocations = summary.allocations;
  out.peak_in_use = summary.peak_in_use;
  out.reserved_at_start = summary.reserved_at_start;
  out.peak_reserved = summary.peak_reserved;
  out.reserved_at_peak = summary.reserved_at_peak;
  out.stitches = summary.stitches;
  out.complete = summary.complete ? 1 : 0;
  out.steps = summary.steps;
  out.plan_requests = summary.plan_requests;
  out.plan_hits = summary.plan_hits;
  out.plan_repeats = summary.plan_repeats;
  out.swap_out_bytes = summary.swap_out_bytes;
  out.swap_in_bytes = summary.swap_in_bytes;
  out.peak_swapped = summary.peak_swapped;
  return out;
}

static_assert(static_cast<int>(OomKind::kNone) == THIMBLE_OOM_NONE &&
              static_cast<int>(OomKind::kTrue) == THIMBLE_OOM_TRUE &&
              static_cast<int>(OomKind::kFragmentation) == THIMBLE_OOM_FRAGMENTATION &&
              static_cast<int>(OomKind::kLimit) == THIMBLE_OOM_LIMIT &&
              static_cast<int>(OomKind::kDriver) == THIMBLE_OOM_DRIVER);

}  // namespace
}  // namespace thimble

using thimble::Address;
using thimble::Guard;
using thimble::NullArgument;
using thimble::StreamId;

extern "C" {

uint32_t thimble_abi_version(void) { return THIMBLE_ABI_VERSION; }

const char* thimble_last_error(void) {
  return thimble::last_error == nullptr ? "" : thimble::last_error->c_str();
}

thimble_status thimble_create(const char* options, thimble_arena** arena) {
  if (arena == nullptr) return NullArgument("arena");
  *arena = nullptr;
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(auto created, thimble::CreateArena(options));
    *arena = created.release();
    return absl::OkStatus();
  });
}

thimble_status thimble_check_options(const char* options, uint64_t device_bytes) {
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto parsed,
                             thimble::ParseOptions(options == nullptr ? "" : options));
    if (device_bytes == 0 || parsed.arena.limit <= device_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError("limit:" + std::to_string(parsed.arena.limit) +
                                      " is more than the device has, " +
                                      std::to_string(device_bytes));
  });
}

thimble_status thimble_parse_size(const char* text, uint64_t* bytes) {
  if (text == nullptr) return NullArgument("text");
  if (bytes == nullptr) return NullArgument("bytes");
  return Guard([&]() -> absl::Status {
    thimble::Bytes size = 0;
    THIMBLE_RETURN_IF_ERROR(thimble::ParseSize(text, &size));
    *bytes = size;
    return absl::OkStatus();
  });
}

void thimble_destroy(thimble_arena* arena) { delete arena; }

const char* thimble_options(const thimble_arena* arena) {
  return arena == nullptr ? "" : arena->options.c_str();
}

thimble_status thimble_allocate(thimble_arena* arena, size_t bytes, size_t alignment,
                                uint64_t stream, uint64_t key, void** block) {
  return thimble_allocate_in_step(arena, bytes, alignment, stream, key, 0, 0, block);
}

uint64_t thimble_key_of(const char* name, size_t length) {
  return thimble::StableHash({name, length}) | 1;
}

thimble_status thimble_allocate_in_step(thimble_arena* arena, size_t bytes, size_t alignment,
                                        uint64_t stream, uint64_t key, uint64_t step, int resident,
                                        void** block) {
  if (arena == nullptr) return NullArgument("arena");
  if (block == nullptr) return NullArgument("block");
  *block = nullptr;
  return Guard([&]() -> absl::Status {
    const auto address =
        arena->arena->Allocate(bytes, alignment, StreamId{stream}, key, step, resident != 0);
    if (!address.ok()) return address.status();
    *block = reinterpret_cast<void*>(*address);
    return absl::OkStatus();
  });
}

thimble_status thimble_free(thimble_arena* arena, void* block, uint64_t stream) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard(
      [&] { return arena->arena->Free(reinterpret_cast<Address>(block), StreamId{stream}); });
}

thimble_status thimble_forget_stream(thimble_arena* arena, uint64_t stream) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] { return arena->arena->ForgetStream(StreamId{stream}); });
}

thimble_status thimble_pin(thimble_arena* arena, const void* const* blocks, size_t count,
                           uint64_t op, uint64_t step, unsigned flags) {
  if (arena == nullptr) return NullArgument("arena");
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  return Guard([&] {
    return arena->arena->Pin(thimble::Addresses(blocks, count),
                             {op, step, thimble::TakesTurn(flags)});
  });
}

thimble_status thimble_unpin(thimble_arena* arena, const void* const* blocks, size_t count,
                             const void* const* touched, size_t touched_count, uint64_t stream,
                             unsigned flags) {
  if (arena == nullptr) return NullArgument("arena");
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  if (touched == nullptr && touched_count > 0) return NullArgument("touched");
  return Guard([&] {
    return arena->arena->Unpin(thimble::Addresses(blocks, count),
                               thimble::Addresses(touched, touched_count), StreamId{stream},
                               thimble::TakesTurn(flags));
  });
}

thimble_status thimble_expose(thimble_arena* arena, const void* const* blocks, size_t count) {
  if (arena == nullptr) return NullArgument("arena");
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  return Guard([&] { return arena->arena->Expose(thimble::Addresses(blocks, count)); });
}

thimble_status thimble_query(thimble_arena* arena, const void* block, thimble_block_info* info) {
  if (arena == nullptr) return NullArgument("arena");
  if (info == nullptr) return NullArgument("info");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto known,
                             arena->arena->Query(reinterpret_cast<Address>(block)));
    return thimble::CopyOut(thimble_block_info{0, known.bytes, known.key, known.seams}, info);
  });
}

thimble_status thimble_get_stats(thimble_arena* arena, thimble_stats* stats) {
  if (arena == nullptr) return NullArgument("arena");
  if (stats == nullptr) return NullArgument("stats");
  return Guard([&] { return thimble::CopyOut(thimble::ToC(arena->arena->GetStats()), stats); });
}

thimble_status thimble_reset_peaks(thimble_arena* arena) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] {
    arena->arena->ResetPeaks();
    return absl::OkStatus();
  });
}

thimble_status thimble_trim(thimble_arena* arena, uint64_t keep_bytes, uint64_t* released_bytes) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] {
    thimble::Bytes released = 0;
    const absl::Status status = arena->arena->Trim(keep_bytes, &released);
    if (released_bytes != nullptr) *released_bytes = released;
    return status;
  });
}

thimble_status thimble_set_limit(thimble_arena* arena, uint64_t bytes) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] { return arena->arena->SetLimit(bytes); });
}

thimble_status thimble_explain(thimble_arena* arena, thimble_oom* oom) {
  if (arena == nullptr) return NullArgument("arena");
  if (oom == nullptr) return NullArgument("oom");
  return Guard([&] { return thimble::CopyOut(thimble::ToC(arena->arena->LastOom()), oom); });
}

thimble_status thimble_mark_step(thimble_arena* arena) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] {
    arena->arena->MarkStep();
    return absl::OkStatus();
  });
}

thimble_status thimble_log_start(thimble_arena* arena, const char* path) {
  if (arena == nullptr) return NullArgument("arena");
  if (path == nullptr) return NullArgument("path");
  return Guard([&] { return arena->arena->StartLog(path, /*most_events=*/0); });
}

thimble_status thimble_log_stop(thimble_arena* arena) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] { return arena->arena->log().Stop(); });
}

thimble_status thimble_log_convert(const char* log, const char* trace, thimble_log_info* info) {
  if (log == nullptr) return NullArgument("log");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const thimble::LogSummary summary,
                             thimble::ConvertLog(log, trace == nullptr ? "" : trace));
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(summary), info);
  });
}

thimble_status thimble_plan_file(const char* problem, const char* plan, double seconds,
                                 uint64_t seed, thimble_plan_info* info) {
  if (problem == nullptr) return NullArgument("problem");
  return Guard([&]() -> absl::Status {
    if (!(seconds >= 0 && seconds <= thimble::plan::kMostSeconds)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "seconds ", seconds, " is not a number from 0 to ", thimble::plan::kMostSeconds));
    }
    THIMBLE_ASSIGN_OR_RETURN(const auto named, thimble::plan::ReadProblemFile(problem));
    thimble::plan::SolveOptions options;
    options.seconds = seconds;
    options.seed = seed;
    const thimble::plan::Plan found = thimble::plan::Solve(named.problem, options);
    THIMBLE_RETURN_IF_ERROR(thimble::plan::ValidatePlan(named.problem, found));
    if (plan != nullptr) {
      THIMBLE_RETURN_IF_ERROR(thimble::plan::WritePlanFile(named.ids, found, plan));
    }
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(found), info);
  });
}

thimble_status thimble_swap_file(const char* trace, const char* schedule, const char* options,
                                 thimble_swap_info* info) {
  if (trace == nullptr) return NullArgument("trace");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto settings,
                             thimble::swap::ParseSettings(options == nullptr ? "" : options));
    THIMBLE_ASSIGN_OR_RETURN(
        const auto summary,
        thimble::PlanSwapFile(trace, settings, schedule == nullptr ? "" : schedule));
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(summary), info);
  });
}

thimble_status thimble_snapshot(thimble_arena* arena, char* buffer, size_t* bytes) {
  if (arena == nullptr) return NullArgument("arena");
  if (bytes == nullptr) return NullArgument("bytes");
  return Guard([&]() -> absl::Status {
    const std::string json = thimble::ToJson(arena->arena->GetSnapshot());
    const size_t room = std::exchange(*bytes, json.size() + 1);
    if (buffer == nullptr) return absl::OkStatus();
    if (room < *bytes) {
      return absl::InvalidArgumentError("the buffer is too small for the snapshot: " +
                                        std::to_string(*bytes) + " bytes are needed");
    }
    std::memcpy(buffer, json.c_str(), *bytes);
    return absl::OkStatus();
  });
}

thimble_status thimble_check(thimble_arena* arena) {
  if (arena == nullptr) return NullArgument("arena");
  return Guard([&] {
    arena->arena->CheckInvariants();
    return absl::OkStatus();
  });
}

}  // extern "C"
