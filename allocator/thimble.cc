// Implements the C interface with Arena.
#include "allocator/thimble.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena/arena.h"
#include "allocator/arena/options.h"
#include "allocator/base/fork.h"
#include "allocator/base/machine.h"
#include "allocator/base/stable_hash.h"
#include "allocator/base/status_macros.h"
#include "allocator/c_status.h"
#include "allocator/driver/cuda_driver.h"
#include "allocator/driver/driver.h"
#include "allocator/driver/host_driver.h"
#include "allocator/driver/nvtx_listener.h"

struct thimble_arena {
  std::string options;                      // effective ones
  std::unique_ptr<thimble::Driver> driver;  // declared before arena, which it outlives
  std::unique_ptr<thimble::Arena> arena;
  // Declared after arena: must be gone before arena releases the addresses.
  std::unique_ptr<thimble::NvtxListener> nvtx;
  thimble::ForkMark process;  // the process that made the arena
};

namespace thimble {
namespace {

const char* OrEmpty(const char* text) { return text == nullptr ? "" : text; }

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
  THIMBLE_ASSIGN_OR_RETURN(Options options, ParseOptions(OrEmpty(text)));
  auto created = std::make_unique<thimble_arena>();
  THIMBLE_ASSIGN_OR_RETURN(created->driver, OpenDriver(&options));
  if (options.nvtx) {
    THIMBLE_ASSIGN_OR_RETURN(created->nvtx, NvtxListener::Create());
  }
  THIMBLE_ASSIGN_OR_RETURN(
      created->arena, Arena::Create(options.arena, created->driver.get(), created->nvtx.get()));
  if (options.nvtx) {
    for (const AddressRange& range : created->arena->AddressRanges()) {
      created->nvtx->AddRange(range.begin, range.bytes());
    }
  }
  if (!options.log.empty()) {
    THIMBLE_RETURN_IF_ERROR(created->arena->StartLog(options.log, options.log_events));
  }
  options.arena.limit = created->arena->GetStats().limit;
  created->options = FormatOptions(options);
  return created;
}

absl::Status InChild() {
  return absl::UnavailableError(
      "this process was forked from the one that uses the device, and cannot use it: start it "
      "in another way, such as multiprocessing.set_start_method('spawn')");
}

// Runs `body`, which takes an Arena& and returns absl::Status.
template <typename Body>
thimble_status With(thimble_arena* arena, Body body) {
  if (arena == nullptr) return NullArgument("arena");
  if (arena->process.IsInChild()) return FromStatus(InChild());
  return Guard([&] { return body(*arena->arena); });
}

// Mostly few enough for the stack.
absl::InlinedVector<Address, 16> Addresses(const void* const* blocks, size_t count) {
  absl::InlinedVector<Address, 16> addresses(count);
  std::transform(blocks, blocks + count, addresses.begin(), ToAddress);
  return addresses;
}

bool TakesTurn(unsigned flags) { return (flags & THIMBLE_OP_TAKES_TURN) != 0; }

// Copies a text to a caller that may not know its length yet.
absl::Status CopyText(const std::string& text, char* buffer, size_t* bytes) {
  const size_t room = std::exchange(*bytes, text.size() + 1);
  if (buffer == nullptr) return absl::OkStatus();
  if (room < *bytes) {
    return absl::InvalidArgumentError(
        "the buffer is too small for the text: " + std::to_string(*bytes) + " bytes are needed");
  }
  std::memcpy(buffer, text.c_str(), *bytes);
  return absl::OkStatus();
}

thimble_stats ToC(const ArenaStats& stats) {
  thimble_stats out = {};
#define THIMBLE_STATISTIC(name, meaning) out.name = stats.name;
#include "allocator/base/statistics.def"
  return out;
}

thimble_block_info ToC(const BlockInfo& info) {
  return {0, info.bytes, info.key, info.seams, info.address.value()};
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
  out.device_total = report.device_total;
  out.held_outside = report.held_outside;
  out.fits_limit = report.fits_limit;
  out.fits_stitch = report.fits_stitch ? 1 : 0;
  out.fits_swap = report.swap.fits ? 1 : 0;
  out.swap_leaves = report.swap.fits ? report.swap.leaves : 0;
  out.swap_stays = report.swap.stays;
  return out;
}

static_assert(static_cast<int>(OomKind::kNone) == THIMBLE_OOM_NONE &&
              static_cast<int>(OomKind::kTrue) == THIMBLE_OOM_TRUE &&
              static_cast<int>(OomKind::kFragmentation) == THIMBLE_OOM_FRAGMENTATION &&
              static_cast<int>(OomKind::kLimit) == THIMBLE_OOM_LIMIT &&
              static_cast<int>(OomKind::kDriver) == THIMBLE_OOM_DRIVER);

}  // namespace
}  // namespace thimble

using thimble::Arena;
using thimble::Guard;
using thimble::NullArgument;
using thimble::StreamId;
using thimble::With;

extern "C" {

uint32_t thimble_abi_version(void) { return THIMBLE_ABI_VERSION; }

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
    THIMBLE_ASSIGN_OR_RETURN(const auto parsed, thimble::ParseOptions(thimble::OrEmpty(options)));
    if (device_bytes == 0 || parsed.arena.limit <= device_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError("limit:" + std::to_string(parsed.arena.limit) +
                                      " is more than the device has, " +
                                      std::to_string(device_bytes));
  });
}

thimble_status thimble_read_options(const char* options, const char* own, thimble_tell tell,
                                    void* context) {
  return Guard([&] {
    if (tell != nullptr) {
      for (const auto& [key, value] : thimble::OptionEntries(thimble::OrEmpty(options))) {
        tell(context, key.c_str(), value.c_str());
      }
    }
    return thimble::ParseOptions(thimble::OrEmpty(options), thimble::OrEmpty(own)).status();
  });
}

thimble_status thimble_device_options(const char* options, const char* own, const char* decided,
                                      unsigned index, char* buffer, size_t* bytes) {
  if (bytes == nullptr) return NullArgument("bytes");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(
        const std::string text,
        thimble::DeviceOptions(thimble::OrEmpty(options), thimble::OrEmpty(own),
                               thimble::OrEmpty(decided), index));
    return thimble::CopyText(text, buffer, bytes);
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

void thimble_destroy(thimble_arena* arena) {
  if (!thimble_is_in_child(arena)) delete arena;
}

int thimble_is_in_child(const thimble_arena* arena) {
  return arena != nullptr && arena->process.IsInChild() ? 1 : 0;
}

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

uint64_t thimble_remember(thimble_arena* arena, const char* name, size_t length) {
  if (name == nullptr) return 0;
  uint64_t key = 0;
  With(arena, [&](Arena& own) {
    key = own.Remember({name, length});
    return absl::OkStatus();
  });
  return key;
}

const char* thimble_name_of(const thimble_arena* arena, uint64_t key) {
  return arena == nullptr ? "" : arena->arena->NameOf(key);
}

thimble_status thimble_allocate_in_step(thimble_arena* arena, size_t bytes, size_t alignment,
                                        uint64_t stream, uint64_t key, uint64_t step,
                                        int long_lived, void** block) {
  if (block == nullptr) return NullArgument("block");
  *block = nullptr;
  return With(arena, [&](Arena& own) -> absl::Status {
    const auto address =
        own.Allocate({bytes, alignment, StreamId{stream}, key, step, long_lived != 0});
    if (!address.ok()) return address.status();
    *block = thimble::ToPointer(*address);
    return absl::OkStatus();
  });
}

thimble_status thimble_free(thimble_arena* arena, void* block, uint64_t stream) {
  return With(arena,
              [&](Arena& own) { return own.Free(thimble::ToAddress(block), StreamId{stream}); });
}

thimble_status thimble_forget_stream(thimble_arena* arena, uint64_t stream) {
  return With(arena, [&](Arena& own) { return own.ForgetStream(StreamId{stream}); });
}

thimble_status thimble_pin(thimble_arena* arena, const void* const* blocks, size_t count,
                           uint64_t op, uint64_t step, unsigned flags) {
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  return With(arena, [&](Arena& own) {
    return own.Pin(thimble::Addresses(blocks, count), {op, step, thimble::TakesTurn(flags)});
  });
}

thimble_status thimble_unpin(thimble_arena* arena, const void* const* blocks, size_t count,
                             const void* const* touched, size_t touched_count, uint64_t stream,
                             unsigned flags) {
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  if (touched == nullptr && touched_count > 0) return NullArgument("touched");
  return With(arena, [&](Arena& own) {
    return own.Unpin(thimble::Addresses(blocks, count), thimble::Addresses(touched, touched_count),
                     StreamId{stream}, thimble::TakesTurn(flags));
  });
}

thimble_status thimble_expose(thimble_arena* arena, const void* const* blocks, size_t count) {
  if (blocks == nullptr && count > 0) return NullArgument("blocks");
  return With(arena, [&](Arena& own) { return own.Expose(thimble::Addresses(blocks, count)); });
}

thimble_status thimble_query(thimble_arena* arena, const void* block, thimble_block_info* info) {
  if (info == nullptr) return NullArgument("info");
  return With(arena, [&](Arena& own) -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto known, own.Query(thimble::ToAddress(block)));
    return thimble::CopyOut(thimble::ToC(known), info);
  });
}

thimble_status thimble_query_inside(thimble_arena* arena, const void* address,
                                    thimble_block_info* info) {
  if (info == nullptr) return NullArgument("info");
  return With(arena, [&](Arena& own) -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto known, own.QueryInside(thimble::ToAddress(address)));
    return thimble::CopyOut(thimble::ToC(known), info);
  });
}

thimble_status thimble_get_addresses(thimble_arena* arena, thimble_addresses* addresses) {
  if (addresses == nullptr) return NullArgument("addresses");
  return With(arena, [&](Arena& own) {
    const auto [home, alias] = own.AddressRanges();
    return thimble::CopyOut(
        thimble_addresses{0, home.begin.value(), home.bytes(), alias.begin.value(), alias.bytes()},
        addresses);
  });
}

const char* thimble_stats_names(void) {
  return ""
#define THIMBLE_STATISTIC(name, meaning) #name " "
#include "allocator/base/statistics.def"
      ;
}

thimble_status thimble_get_stats(thimble_arena* arena, thimble_stats* stats) {
  if (stats == nullptr) return NullArgument("stats");
  return With(arena,
              [&](Arena& own) { return thimble::CopyOut(thimble::ToC(own.GetStats()), stats); });
}

thimble_status thimble_reset_peaks(thimble_arena* arena) {
  return With(arena, [&](Arena& own) {
    own.ResetPeaks();
    return absl::OkStatus();
  });
}

thimble_status thimble_peak_begin(thimble_arena* arena, uint64_t* mark) {
  if (mark == nullptr) return NullArgument("mark");
  return With(arena, [&](Arena& own) {
    *mark = own.SetPeakMark();
    return absl::OkStatus();
  });
}

thimble_status thimble_peak_read(thimble_arena* arena, uint64_t mark, thimble_peaks* peaks) {
  if (peaks == nullptr) return NullArgument("peaks");
  return With(arena, [&](Arena& own) -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto found, own.PeaksSince(mark));
    return thimble::CopyOut(thimble_peaks{0, found.in_use, found.reserved}, peaks);
  });
}

thimble_status thimble_peak_end(thimble_arena* arena, uint64_t mark) {
  return With(arena, [&](Arena& own) { return own.RemovePeakMark(mark); });
}

thimble_status thimble_trim(thimble_arena* arena, uint64_t keep_bytes, uint64_t* released_bytes) {
  return With(arena, [&](Arena& own) {
    thimble::Bytes released = 0;
    const absl::Status status = own.Trim(keep_bytes, &released);
    if (released_bytes != nullptr) *released_bytes = released;
    return status;
  });
}

thimble_status thimble_set_limit(thimble_arena* arena, uint64_t bytes) {
  return With(arena, [&](Arena& own) { return own.SetLimit(bytes); });
}

thimble_status thimble_explain(thimble_arena* arena, thimble_oom* oom) {
  if (oom == nullptr) return NullArgument("oom");
  return With(arena,
              [&](Arena& own) { return thimble::CopyOut(thimble::ToC(own.LastOom()), oom); });
}

thimble_status thimble_explain_text(thimble_arena* arena, const char* op, char* buffer,
                                    size_t* bytes) {
  if (bytes == nullptr) return NullArgument("bytes");
  return With(arena, [&](Arena& own) -> absl::Status {
    return thimble::CopyText(thimble::FormatOom(own.LastOom(), thimble::OrEmpty(op)), buffer,
                             bytes);
  });
}

thimble_status thimble_mark_step(thimble_arena* arena) {
  return With(arena, [&](Arena& own) {
    own.MarkStep();
    return absl::OkStatus();
  });
}

thimble_status thimble_log_start(thimble_arena* arena, const char* path) {
  if (path == nullptr) return NullArgument("path");
  return With(arena, [&](Arena& own) { return own.StartLog(path, /*most_events=*/0); });
}

thimble_status thimble_log_stop(thimble_arena* arena) {
  return With(arena, [&](Arena& own) { return own.StopLog(); });
}

thimble_status thimble_snapshot(thimble_arena* arena, char* buffer, size_t* bytes) {
  if (bytes == nullptr) return NullArgument("bytes");
  return With(arena, [&](Arena& own) -> absl::Status {
    return thimble::CopyText(thimble::ToJson(own.GetSnapshot()), buffer, bytes);
  });
}

thimble_status thimble_check(thimble_arena* arena) {
  return With(arena, [&](Arena& own) {
    own.CheckInvariants();
    return absl::OkStatus();
  });
}

}  // extern "C"
