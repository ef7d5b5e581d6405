// The state of an arena's memory at one time, as plain data and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/base/stats.h"

namespace thimble {

struct Snapshot {
  enum class State : std::uint8_t { kFree, kUsed, kVacant };
  struct Piece {  // an interval of the home space; pieces tile it
    Bytes offset = 0;
    Bytes bytes = 0;
    State state = State::kFree;
    bool small = false;     // in a slab of small blocks
    bool stitched = false;  // part of a stitched block
    Bytes owner = 0;        // used: offset of the first piece of the same block
    std::uint64_t key = 0;  // used: the caller
  };

  Address home_base;
  Bytes chunk_bytes = 0;
  std::vector<Piece> pieces;
  ArenaStats stats;
};

// One JSON object of numbers, with the names of thimble_stats.
std::string ToJson(const ArenaStats& stats);

// One JSON object: home_base, chunk_bytes, stats (an object) and pieces (a list of objects).
std::string ToJson(const Snapshot& snapshot);

}  // namespace thimble
