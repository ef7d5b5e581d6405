#include "tests/plan/problems.h"

#include <algorithm>
#include <vector>

namespace thimble::plan {
namespace {

std::int64_t Between(std::int64_t least, std::int64_t most, Random& random) {
  return least + random.Below(most - least + 1);
}

// From `least` to `most`, every power of two as likely as every other.
std::int64_t LogBetween(int least_bits, int most_bits, Random& random) {
  const std::int64_t power = std::int64_t{1} << Between(least_bits, most_bits - 1, random);
  return power + random.Below(power);
}

}  // namespace

Problem RandomProblem(std::int32_t count, std::int64_t moments, std::int64_t most, Random& random) {
  Problem problem;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t lower = random.Below(moments);
    problem.buffers.push_back(
        {lower, Between(lower + 1, moments, random), Between(1, most, random)});
  }
  return problem;
}

Problem CutProblem(std::int32_t count, std::int64_t height, Random& random) {
  constexpr std::int64_t kMoments = 1024;
  constexpr int kTries = 4;  // of which the largest is cut, so that sizes stay comparable
  std::vector<Buffer> pieces = {{0, kMoments, height}};
  const auto area = [&](std::int64_t i) {
    return (pieces[i].upper - pieces[i].lower) * pieces[i].size;
  };
  while (static_cast<std::int32_t>(pieces.size()) < count) {
    std::int64_t chosen = random.Below(static_cast<std::int64_t>(pieces.size()));
    for (int k = 1; k < kTries; ++k) {
      const std::int64_t other = random.Below(static_cast<std::int64_t>(pieces.size()));
      if (area(other) > area(chosen)) chosen = other;
    }
    Buffer& piece = pieces[chosen];
    Buffer rest = piece;
    if (random.OneIn(2) && piece.upper - piece.lower > 1) {
      piece.upper = rest.lower = Between(piece.lower + 1, piece.upper - 1, random);
    } else if (piece.size > 1) {
      rest.size = Between(1, piece.size - 1, random);
      piece.size -= rest.size;
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  for (Buffer& piece : pieces) {
    const std::int64_t length = piece.upper - piece.lower;
    if (random.OneIn(2)) piece.upper -= random.Below(std::max<std::int64_t>(1, length / 8));
  }
  return {pieces};
}

Problem TightProblem(std::int32_t count, Random& random) {
  constexpr std::int64_t kLargest = 4;
  constexpr int kLiveAtOnce = 4;
  Problem problem;
  std::vector<Buffer>& buffers = problem.buffers;
  std::vector<std::int64_t> live;  // indices
  const auto begin = [&](std::int64_t now, std::int64_t size) {
    live.push_back(static_cast<std::int64_t>(buffers.size()));
    buffers.push_back({now, 0, size});
  };
  for (int k = 0; k < kLiveAtOnce; ++k) {
    begin(0, Between(2, kLargest, random));
  }
  std::int64_t now = 1;
  for (; static_cast<std::int32_t>(buffers.size()) < count; ++now) {
    std::int64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      const std::int64_t chosen = random.Below(static_cast<std::int64_t>(live.size()));
      buffers[live[chosen]].upper = now;
      sum += buffers[live[chosen]].size;
      live.erase(live.begin() + chosen);
    }
    const std::int64_t part = Between(1, sum - 1, random);
    begin(now, part);
    begin(now, sum - part);
  }
  for (const std::int64_t i : live) buffers[i].upper = now;
  return problem;
}

Problem TrainingProblem(std::int32_t count, Random& random) {
  constexpr std::int64_t kOps = 60;  // of a layer
  constexpr std::int32_t kBuffersPerLayer = 160;
  struct Op {
    std::int64_t size;
    bool is_kept;  // until the backward pass
    bool has_weight;
    std::int64_t scratch_life;
  };
  std::vector<Op> ops;
  for (std::int64_t k = 0; k < kOps; ++k) {
    ops.push_back({LogBetween(8, 26, random), random.Below(100) < 35, random.Below(100) < 15,
                   Between(1, 12, random)});
  }
  const std::int64_t layers = std::max(1, count / kBuffersPerLayer);
  const std::int64_t forward = layers * kOps;
  const std::int64_t end = 3 * forward;  // the backward pass takes twice as long
  Problem problem;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t k = 0; k < kOps; ++k) {
      const Op& op = ops[k];
      const std::int64_t now = layer * kOps + k;
      const std::int64_t back = end - 2 * now - 2;
      const std::int64_t life = Between(1, op.scratch_life, random);
      problem.buffers.push_back(
          {now, op.is_kept ? back + Between(1, 3, random) : now + 1 + life, op.size});
      problem.buffers.push_back({back, back + 1 + 2 * life, op.size});
      if (random.OneIn(2)) {
        problem.buffers.push_back({back, back + 2, ops[random.Below(kOps)].size});
      }
      if (op.has_weight) {
        problem.buffers.push_back({0, end + 2 * kOps, op.size});
        problem.buffers.push_back({back, end + random.Below(kOps), op.size});
      }
    }
  }
  return problem;
}

Problem StaggeredProblem(std::int32_t count, Random& random) {
  Problem problem;
  std::vector<std::int64_t> sizes;
  for (int k = 0; k < 8; ++k) sizes.push_back(Between(1, 12, random) << 20);
  const auto any_size = [&] { return sizes[random.Below(8)]; };
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t kind = random.Below(100);
    std::int64_t lower = random.Below(count);
    std::int64_t life = 0;
    std::int64_t size = 0;
    if (kind < 5) {
      size = (any_size() << random.Below(4)) + 1;
      life = random.Below(count / 10 + 1);
    } else if (kind < 10) {
      size = any_size() + 1;
      lower /= 2;
      life = count - 2 * lower + random.Below(100);
    } else if (kind < 30) {
      size = (any_size() >> Between(1, 6, random)) + 1;
      life = random.Below(count / 20 + 1);
    } else {
      size = LogBetween(3, 19, random) | 1;
      life = random.Below(200);
    }
    problem.buffers.push_back({lower, lower + life + 2, size});
  }
  return problem;
}

ConflictProblem AsConflicts(const Problem& problem, std::int64_t alignment) {
  const std::int32_t count = static_cast<std::int32_t>(problem.buffers.size());
  ConflictProblem result;
  result.alignment = alignment;
  result.conflicts = Conflicts(count);
  for (std::int32_t a = 0; a < count; ++a) {
    const Buffer& buffer = problem.buffers[a];
    result.sizes.push_back((buffer.size + alignment - 1) / alignment * alignment);
    for (std::int32_t b = 0; b < a; ++b) {
      const Buffer& other = problem.buffers[b];
      if (buffer.lower < other.upper && other.lower < buffer.upper) result.conflicts.Add(a, b);
    }
  }
  return result;
}

}  // namespace thimble::plan
