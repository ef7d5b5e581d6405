// One interval of the home space: free, in use by a caller, held for a plan that hands its bytes
// out itself, or vacant (no memory behind it).
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/vmm/alias_space.h"

namespace thimble {

using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = ~BlockId{0};

// Everything is a multiple of this; so are the addresses callers see.
inline constexpr Bytes kUnit = 256;

// Small blocks live in slabs, apart from the large ones, so that they cannot cut up whole chunks.
// So do large ones that are expected to stay: what changes around them keeps its chunks whole.
enum class Pool : std::uint8_t { kLarge, kSmall, kLongLived };
inline constexpr int kPools = 3;

enum class BlockState : std::uint8_t { kUnused, kFree, kUsed, kHeld, kVacant };

// A stream known to the arena. Memory freed on a stream carries its tag until the stream's frontier
// has passed the free; clean memory is free on every stream. See frontier.h.
using StreamTag = std::uint8_t;
inline constexpr StreamTag kCleanTag = 0;

// Counts the points recorded on a stream: what was freed in epoch e is covered by point e.
using Epoch = Position<struct EpochLine, std::uint32_t>;

struct alignas(64) Block {
  Bytes offset = 0;
  Bytes bytes = 0;
  std::uint64_t key = 0;        // used: who asked; 0 for nobody
  BlockId previous = kNoBlock;  // neighbours in the home space
  BlockId next = kNoBlock;
  BlockId bin_previous = kNoBlock;  // free: neighbours in its bin
  BlockId bin_next = kNoBlock;
  BlockId chain = kNoBlock;  // used and stitched: the next extent of the same block
  AliasId alias = kNoAlias;  // used and stitched, first extent: the window it is seen through
  union {
    Epoch epoch{};       // free and tagged: when it was freed
    std::uint32_t site;  // used, first extent: what a plan knows it by
  };
  std::uint32_t padding = 0;  // used: bytes before the address the caller sees
  std::uint16_t bin = 0;
  BlockState state = BlockState::kUnused;
  Pool pool = Pool::kLarge;
  StreamTag tag = kCleanTag;
  bool absent = false;  // used: some of its slots have no memory, because its bytes are elsewhere
};
static_assert(sizeof(Block) == 64, "one block, one cache line");

}  // namespace thimble
