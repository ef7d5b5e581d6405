#include "allocator/offline/schedule/parts.h"

#include <algorithm>
#include <utility>

namespace thimble::schedule {
namespace {

constexpr std::int64_t kBorder = std::int64_t{2} << 20;

}  // namespace

Problem SplitBlocks(const Problem& problem) {
  Problem split;
  split.ops = problem.ops;
  split.measured = problem.measured;
  for (const Block& block : problem.blocks) {
    const std::int64_t parts = (block.bytes + kLargestPart - 1) / kLargestPart;
    const std::int64_t even = (block.bytes + parts - 1) / parts;
    const std::int64_t bytes = (even + kBorder - 1) / kBorder * kBorder;
    for (std::int64_t begin = 0; begin < block.bytes; begin += bytes) {
      Block part = block;
      part.offset = begin;
      part.bytes = std::min(bytes, block.bytes - begin);
      split.blocks.push_back(std::move(part));
    }
  }
  return split;
}

}  // namespace thimble::schedule
