// Chooses the free pieces from which one block is stitched. A pure function of what is free.
//
// A chunk can only be mapped whole, so a block is: at its head perhaps the free end of a chunk,
// then whole free chunks, at its tail perhaps the free beginning of a chunk. The bytes between are
// exact: nothing is rounded up, the rest of a chunk that is only used in part stays free.
//
//   home   |aaaa....|bb......|........|.....ccc|        '.' free
//   block       [1..][2.......][3....]                  head: end of chunk 0; chunk 2; tail: chunk
//   3
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/vmm/alias_space.h"
#include "allocator/vmm/home_space.h"

namespace thimble {

struct Recipe {
  std::vector<Extent> extents;  // the block's bytes, in the order of its addresses
  std::vector<Extent> runs;     // the whole chunks that must be mapped to show them
  Bytes head_offset = 0;        // where the block begins in the first chunk of runs
  bool repeats_chunk = false;   // head and tail are two ends of the same chunk
  Bytes shortfall = 0;          // not enough is free: with so much more, Waste::kAny would do
};

// What is left of an end, between the blocks on its chunk's two ends, is wasted: no stitch can
// use it until one of them is freed. Ten KiB taken from both ends of a chunk strand almost all of
// it.
enum class Waste : std::uint8_t {
  kLittle,  // waste at most an eighth of a chunk; rather report a shortfall
  kAny,     // waste whatever it takes, when nothing else is left
};

// `pieces` are disjoint free extents. `bytes` is positive. What whole chunks do not hold comes from
// the ends of used chunks if little is wasted, from two of them if need be; only then is a whole
// chunk broken up, since whole chunks are what the next stitch will be short of.
Recipe Gather(const HomeSpace& home, const std::vector<Extent>& pieces, Bytes bytes, Waste waste);

// The largest block that Gather could build from `pieces`.
Bytes LargestStitch(const HomeSpace& home, const std::vector<Extent>& pieces);

}  // namespace thimble
