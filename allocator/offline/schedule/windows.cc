#include "allocator/offline/schedule/windows.h"

#include <algorithm>

namespace thimble::schedule {

std::vector<Window> FindWindows(const Problem& problem) {
  const std::int32_t ops = static_cast<std::int32_t>(problem.ops.size());
  std::vector<Window> windows;
  const auto add = [&](std::size_t block, std::int32_t after, std::int32_t before, bool returns) {
    if (before <= after + 1) return;  // no op between them
    const std::int32_t steps = after / ops;
    windows.push_back(
        {static_cast<std::int32_t>(block), after - steps * ops, before - steps * ops, returns});
  };
  for (std::size_t i = 0; i < problem.blocks.size(); ++i) {
    const Block& block = problem.blocks[i];
    const std::vector<std::int32_t>& touches = block.touches;
    for (std::size_t k = 0; k + 1 < touches.size(); ++k) add(i, touches[k], touches[k + 1], true);
    if (block.is_cyclic) {
      add(i, touches.back(), touches.front() + ops, true);
    } else if (block.dies != Block::kLives) {
      add(i, touches.back(), block.dies, false);
    }
  }
  return windows;
}

std::int64_t LowestPeak(const Problem& problem, const std::vector<Window>& windows) {
  std::vector<std::int64_t> left;
  for (const Op& op : problem.ops) left.push_back(op.live_bytes);
  for (const Window& window : windows) {
    for (std::int32_t op = window.after + 1; op < window.before; ++op) {
      left[op % left.size()] -= problem.blocks[window.block].bytes;
    }
  }
  return *std::max_element(left.begin(), left.end());
}

}  // namespace thimble::schedule
