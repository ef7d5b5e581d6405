// Why a request failed, in figures and in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/bytes.h"

namespace thimble {

enum class OomKind : std::uint8_t {
  kNone,
  kTrue,           // more is asked for than is free anywhere
  kFragmentation,  // enough bytes are free, but not in pieces that can be put together
  kLimit,          // the arena's own limit stops it; the device has more
  kDriver,         // the driver gave less than the limit allows: others hold memory
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
  Bytes requested = 0;
  Bytes missing = 0;  // so many bytes more would have made it fit
  Bytes in_use = 0;
  Bytes free = 0;
  Bytes reserved = 0;
  Bytes limit = 0;
  Bytes largest_free = 0;        // without stitching
  Bytes largest_stitchable = 0;  // with stitching, if that is on
  Bytes device_free = 0;         // as the driver tells; 0 if it does not
  std::vector<Holder> holders;   // who holds most, largest first
};

// What the figures say about the cause; needs everything but kind.
OomKind KindOf(const OomReport& report);

// One paragraph for a log or an exception: what was asked, what there is, what would help.
std::string FormatOom(const OomReport& report);

}  // namespace thimble
