// Why a request failed, and what would have made it fit, in figures and in words.
//
// Every sentence that names a setting was computed from the arena as it was when the request
// failed: which pieces were free, which blocks were idle, what the driver and the host had left. A
// setting that is on is never named, and where the arena cannot know it says nothing
// (docs/009-out-of-memory.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/bytes.h"

namespace thimble {

enum class OomKind : std::uint8_t {
  kNone,
  kTrue,           // what is in use and the request are more than the device has
  kFragmentation,  // enough bytes are free, but not as one block
  kLimit,          // the arena's own limit stops it; the device has more
  kDriver,         // the driver gave less than the limit allows: others hold it, or it refuses
};

// What the arena knows about moving idle blocks to the host.
struct SwapOutlook {
  bool on = false;       // swap:auto: whatever could leave has left already
  bool watched = false;  // uses are announced, so the following is known
  Bytes stays = 0;       // of blocks that cannot leave now: in use by an op, or by others unseen
  Bytes idle = 0;        // of the others
  Bytes host_room = 0;   // what the host would take of them
  bool fits = false;     // with swap:auto, if that is off
  Bytes leaves = 0;      // then: so many of the idle bytes leave
};

struct OomReport {
  static constexpr std::size_t kMaxHolders = 8;
  // All blocks of one key. Those without a key are told apart by their size: it is what people
  // recognise an array by.
  struct Holder {
    std::uint64_t key = 0;
    Bytes bytes = 0;  // of all its blocks
    std::uint64_t blocks = 0;
    std::string name;  // of the key; "" if it is not known
  };

  OomKind kind = OomKind::kNone;
  bool stitch = true;  // whether the arena may put blocks together
  bool plan = false;   // whether it plans
  SwapOutlook swap;
  Bytes requested = 0;
  Bytes shortfall = 0;  // what had to come from the driver, as things are set
  Bytes missing = 0;  // of that, what the limit or the device did not allow; 0: the driver refused
  Bytes in_use = 0;
  Bytes free = 0;
  Bytes reserved = 0;
  Bytes limit = 0;
  Bytes largest_free = 0;        // without stitching
  Bytes largest_stitchable = 0;  // with stitching, be that on or off
  bool device_told = false;      // the driver tells what it has left:
  Bytes device_free = 0;
  Bytes device_total = 0;
  Bytes held_outside = 0;     // of the device, neither free nor the arena's
  std::uint64_t step_ns = 0;  // how long a step of training takes; 0: not known

  // What would have made it fit, each by itself.
  Bytes fits_limit = 0;      // this limit, of which the device has enough; 0: none
  bool fits_stitch = false;  // stitching, which is off

  std::vector<Holder> holders;  // who holds most, largest first
};

// What the figures say about the cause; needs everything but kind.
OomKind KindOf(const OomReport& report);

// What swap:auto would cost, in words; "" if the request does not fit with it.
std::string SwapCost(const OomReport& report);

// The report, the same for logs and exceptions. `op` is who asked, if that is known.
std::string FormatOom(const OomReport& report, const std::string& op = "");

}  // namespace thimble
