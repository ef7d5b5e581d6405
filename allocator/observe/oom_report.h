// Why a request failed, and what would have made it fit, in figures and in words.
//
// Every sentence that names a setting is computed from the arena at the time of the failure: which
// pieces were free, which blocks were idle, how much the driver and the host had left. The report
// never names a setting that is on, and says nothing that the arena cannot know
// (docs/009-out-of-memory.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/bytes.h"

namespace thimble {

enum class OomKind : std::uint8_t {
  kNone,
  kTrue,           // memory in use and the request exceed the device
  kFragmentation,  // enough memory is free, but not in one block
  kLimit,          // the arena's limit is reached; the device has more
  kDriver,         // the driver refused memory within the limit
};

// The arena's knowledge about moving idle blocks to the host.
struct SwapOutlook {
  bool on = false;       // swap:auto: all blocks that could leave have left
  bool watched = false;  // uses are announced, so the fields below are known
  Bytes stays = 0;       // of blocks that cannot leave now: an op uses them, or they are exposed
  Bytes idle = 0;        // of the others
  Bytes host_room = 0;   // how much more the host can take
  bool fits = false;     // the request fits with swap:auto, which is off
  Bytes leaves = 0;      // if so: idle bytes that leave
};

struct OomReport {
  static constexpr std::size_t kMaxHolders = 8;
  // All blocks of one key. Blocks without a key are grouped by size, by which people recognise an
  // array.
  struct Holder {
    std::uint64_t key = 0;
    Bytes bytes = 0;  // of all its blocks
    std::uint64_t blocks = 0;
    std::string name;  // of the key; "" if unknown
  };

  OomKind kind = OomKind::kNone;
  bool stitch = true;  // whether the arena may put blocks together
  bool plan = false;   // whether it plans
  SwapOutlook swap;
  Bytes requested = 0;
  Bytes shortfall = 0;  // needed from the driver with these settings
  Bytes missing = 0;    // part of it beyond the limit or the device; 0: the driver refused
  Bytes in_use = 0;
  Bytes free = 0;
  Bytes reserved = 0;
  Bytes limit = 0;
  Bytes largest_free = 0;        // without stitching
  Bytes largest_stitchable = 0;  // with stitching, on or off
  bool device_told = false;      // whether device_free is known
  Bytes device_free = 0;
  Bytes device_total = 0;
  Bytes held_outside = 0;     // of the device, neither free nor reserved by the arena
  std::uint64_t step_ns = 0;  // duration of a training step; 0: unknown

  // Each of these alone would have made the request fit.
  Bytes fits_limit = 0;      // with this limit, for which the device has room; 0: none
  bool fits_stitch = false;  // with stitching, which is off

  std::vector<Holder> holders;  // the largest ones, largest first
};

// The cause, computed from all other fields.
OomKind KindOf(const OomReport& report);

// The cost of swap:auto in words; "" if the request does not fit with it.
std::string SwapCost(const OomReport& report);

// The report as text, the same for logs and exceptions. `op` is the name of the caller, if known.
std::string FormatOom(const OomReport& report, const std::string& op = "");

}  // namespace thimble
