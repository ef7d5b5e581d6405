#include <algorithm>

#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

std::vector<Held> ProgramBuilder::Fetched(Lane& lane, int i, const Segment& segment, int unit) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  std::vector<Held> result;
  for (Held one : lane.kept[{task_, i}]) {
    if (!Overlap(one.layers, segment.layers)) continue;
    if (segment.keep == Keep::kOnHost) {
      const double bytes = out_.tensors[one.tensor].bytes;
      const int op = AddOp(Kind::kActivationsIn, Stream::kIn, one.layers, bounds[i], bounds[i + 1],
                           bytes, 0, unit);
      Wait(op, one.op);
      one.tensor = AddTensor(bytes, unit);
      one.op = op;
      out_.makes.Add(op, one.tensor);
    }
    result.push_back(one);
  }
  return result;
}

void ProgramBuilder::BuildBackward(Lane& lane, int i) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  const bool later = task_ > fused_;
  const bool is_last = i == count() - 1;
  std::vector<Piece> above = arrived_;  // the gradient from above
  int unit = UnitOf(i);
  for (const Segment& one : SegmentsDown(task())) {
    const Pack segment = one.layers;
    int first_op = -1;
    int op = -1;
    int work = -1;
    const auto run = [&](Kind kind, Pack layers) {
      const double seconds = kind == Kind::kBackward
                                 ? costs_.BackwardSeconds(size(i), layers)
                                 : costs_.Seconds(Pass::kForward, size(i), layers);
      op = AddOp(kind, Stream::kCompute, layers, bounds[i], bounds[i + 1], 0, seconds, unit);
      if (first_op < 0) first_op = op;
      if (i == 0) WaitForWeights(op, layers);
    };
    // The first microbatch waits for weights chunk by chunk; the last frees them chunk by chunk.
    const auto chunks = [&](Pack layers, bool whole) {
      std::vector<Pack> result;
      for (std::size_t c = 0; c + 1 < cuts_.size() && !whole; ++c) {
        const Pack part = {std::max(cuts_[c], layers.first),
                           std::min(cuts_[c + 1] - 1, layers.last)};
        if (part.first <= part.last) result.push_back(part);
      }
      if (whole) result.push_back(layers);
      return result;
    };
    std::vector<Piece> own;
    std::vector<Held> stored;
    if (one.keep == Keep::kNothing) {
      own = InputOf(lane, i, segment.first, unit);
      for (const Pack& part : chunks(segment, i > 0)) run(Kind::kRecompute, part);
      work = AddTensor(costs_.WorkBytes(Pass::kBackward, size(i), segment), unit);
      out_.makes.Add(first_op, work);
    } else {
      stored = Fetched(lane, i, one, unit);
    }
    std::vector<Pack> parts = chunks(segment, !is_last);
    std::reverse(parts.begin(), parts.end());
    int first_back = -1;
    for (const Pack& part : parts) {
      run(Kind::kBackward, part);
      if (first_back < 0) first_back = op;
      if (!is_last) continue;
      UseWeights(op, part);
      const std::size_t c =
          std::upper_bound(cuts_.begin(), cuts_.end(), part.first) - cuts_.begin() - 1;
      reduce_[c].push_back({gpu_, place_, op, gradients_[c]});
    }
    if (i == 0 && segment.last == task().pack.last) {
      for (const int gradient : gradients_) out_.makes.Add(first_back, gradient);
    }
    if (work >= 0) out_.uses.Add(op, work);
    for (const Held& each : stored) {
      Wait(first_back, each.op);
      out_.uses.Add(op, each.tensor);
    }
    UsePieces(own, i, first_op, op);
    if (later) {
      UsePieces(above, i, first_back, op);
    } else if (own.empty()) {
      UsePieces(arrived_, i, first_op, op);
    }
    if (segment.first == 0) return;
    const int output = AddTensor(costs_.InputBytes(size(i), segment.first));
    out_.makes.Add(op, output);
    above = {{bounds[i], bounds[i + 1], output, op}};
    ++unit;
  }
  outputs_.push_back(above[0]);
}

}  // namespace thimble::harmony
