#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

// The first microbatch waits for weights chunk by chunk; every microbatch is cut where it leaves a
// stash or activations.
std::vector<int> ProgramBuilder::ForwardCuts(int i) const {
  const Pack pack = task().pack;
  std::vector<int> cuts = {pack.first, pack.last + 1};
  if (i == 0) cuts = cuts_;
  for (const Segment& one : SegmentsDown(task())) cuts.push_back(one.layers.first);
  for (const Later& one : later_) {
    const int cut = one.segment.layers.first;
    if (cut > pack.first && cut <= pack.last) cuts.push_back(cut);
  }
  SortCuts(cuts);
  return cuts;
}

// Keeps what `op` computes of `layers` for the backward of a later segment, here or on the host.
void ProgramBuilder::KeepActivations(Lane& lane, int i, const Later& later, Pack layers, int op) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  double bytes = costs_.KeptBytes(size(i), layers);
  // The input of a later part is the output of the part before.
  if (layers.first != later.segment.layers.first) bytes -= costs_.InputBytes(size(i), layers.first);
  const int tensor = AddTensor(bytes);
  out_.makes.Add(op, tensor);
  int there = op;
  if (later.segment.keep == Keep::kOnHost) {
    there =
        AddOp(Kind::kActivationsOut, Stream::kOut, layers, bounds[i], bounds[i + 1], bytes, 0, i);
    Wait(there, op);
    out_.uses.Add(there, tensor);
  }
  lane.kept[{later.task, i}].push_back({layers, tensor, there, task_});
}

// Sends the input of `layer` to the host. Op `before` makes it or, if there is none, the previous
// task.
void ProgramBuilder::StashInput(Lane& lane, int i, int layer, int before) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  std::vector<Piece> sources;
  if (before >= 0) {
    const int tensor = AddTensor(costs_.InputBytes(size(i), layer));
    out_.makes.Add(before, tensor);
    sources.push_back({bounds[i], bounds[i + 1], tensor, before});
  } else {
    for (const Piece& piece : arrived_) {  // each piece once
      if (piece.first_sample >= bounds[i] && piece.first_sample < bounds[i + 1]) {
        sources.push_back(piece);
      }
    }
  }
  for (const Piece& source : sources) {
    const int out =
        Copy(Kind::kStashOut, Stream::kOut, layer, source.first_sample, source.end_sample, i);
    Wait(out, source.op);
    out_.uses.Add(out, source.tensor);
    lane.stashes[layer].push_back({source.first_sample, source.end_sample, -1, out});
  }
}

void ProgramBuilder::BuildForward(Lane& lane, int i) {
  const Pack pack = task().pack;
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  const std::vector<int> cuts = ForwardCuts(i);
  const std::vector<Piece> own = InputOf(lane, i, pack.first, UnitOf(i));
  int first_op = -1;
  int op = -1;
  int work = -1;   // of the segment
  int inner = -1;  // the input of the segment, from the segment before
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    const Pack layers = {cuts[c], cuts[c + 1] - 1};
    const Pack segment = SegmentWith(layers.first);
    const int before = op;
    op = AddOp(Kind::kForward, Stream::kCompute, layers, bounds[i], bounds[i + 1], 0,
               costs_.Seconds(Pass::kForward, size(i), layers), i);
    if (first_op < 0) first_op = op;
    if (layers.first == segment.first) {
      work = AddTensor(costs_.WorkBytes(Pass::kForward, size(i), segment));
      out_.makes.Add(op, work);
    }
    if (layers.last == segment.last) {
      out_.uses.Add(op, work);
      if (inner >= 0) out_.uses.Add(op, inner);
      inner = -1;
      if (layers.last < pack.last) {
        inner = AddTensor(costs_.InputBytes(size(i), layers.last + 1));
        out_.makes.Add(op, inner);
      }
    }
    if (i == 0) WaitForWeights(op, layers);
    if (i == count() - 1) UseWeights(op, layers);
    for (const Later& one : later_) {
      const bool is_kept = one.segment.keep != Keep::kNothing;
      if (is_kept && Overlap(one.segment.layers, layers)) KeepActivations(lane, i, one, layers, op);
      if (!is_kept && layers.first > 0 && one.segment.layers.first == layers.first) {
        StashInput(lane, i, layers.first, before);
      }
    }
  }
  UsePieces(own.empty() ? arrived_ : own, i, first_op, op);
  const int output = AddTensor(costs_.InputBytes(size(i), pack.last + 1));
  out_.makes.Add(op, output);
  outputs_.push_back({bounds[i], bounds[i + 1], output, op});
}

}  // namespace thimble::harmony
