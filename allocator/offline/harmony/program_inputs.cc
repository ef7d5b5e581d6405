#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

// Brings boundary pieces to this GPU, unless they are already here.
void ProgramBuilder::TakeOutputs(Lane& lane) {
  arrived_ = lane.outputs;
  const int layer = task_ > fused_ ? task().pack.last + 1 : task().pack.first;
  if (lane.outputs.empty() || (lane.outputs_gpu == gpu_ && !lane.outputs_on_host)) return;
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  for (Piece& piece : arrived_) {
    int first_user = 0;
    while (bounds[first_user + 1] <= piece.first_sample) ++first_user;
    const bool by_host = lane.outputs_on_host;
    const int op =
        Copy(by_host ? Kind::kBoundaryIn : Kind::kReceive, by_host ? Stream::kIn : Stream::kPeerIn,
             layer, piece.first_sample, piece.end_sample, UnitOf(first_user));
    Wait(op, piece.op);
    if (!by_host) {
      out_.ops[op].from = lane.outputs_gpu;
      out_.uses.Add(op, piece.tensor);
    }
    piece.tensor = AddTensor(out_.ops[op].action.bytes, UnitOf(first_user));
    piece.op = op;
    out_.makes.Add(op, piece.tensor);
  }
}

// The input of `layer` for microbatch `i` if it does not come from the previous task: data or a
// stash.
std::vector<Piece> ProgramBuilder::InputOf(Lane& lane, int i, int layer, int unit) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  if (layer > 0 && task_ <= fused_) return {};
  const int op = Copy(layer == 0 ? Kind::kDataIn : Kind::kStashIn, Stream::kIn, layer, bounds[i],
                      bounds[i + 1], unit);
  if (layer > 0) {
    for (const Piece& stash : lane.stashes[layer]) {
      if (stash.first_sample < bounds[i + 1] && stash.end_sample > bounds[i]) Wait(op, stash.op);
    }
  }
  const int tensor = AddTensor(out_.ops[op].action.bytes, unit);
  out_.makes.Add(op, tensor);
  return {{bounds[i], bounds[i + 1], tensor, op}};
}

void ProgramBuilder::UsePieces(const std::vector<Piece>& pieces, int i, int first_op, int last_op) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  for (const Piece& piece : pieces) {
    if (piece.end_sample <= bounds[i] || piece.first_sample >= bounds[i + 1]) continue;
    Wait(first_op, piece.op);
    out_.uses.Add(last_op, piece.tensor);
  }
}

}  // namespace thimble::harmony
