#include <algorithm>

#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

// Loads the layers that the previous task on this GPU does not have.
void ProgramBuilder::AddWeights() {
  const Pack pack = task().pack;
  Before& before = before_[gpu_];
  weights_.clear();
  if (before.is_there) {
    for (const Held& one : before.weights) {
      const Pack shared = {std::max(one.layers.first, pack.first),
                           std::min(one.layers.last, pack.last)};
      if (shared.first <= shared.last) weights_.push_back({shared, one.tensor, one.op, one.task});
    }
  }
  const std::vector<Held> kept = weights_;
  for (std::size_t c = 0; c + 1 < cuts_.size(); ++c) {
    // For each chunk, the runs of layers that are not here yet.
    for (int layer = cuts_[c]; layer < cuts_[c + 1];) {
      const auto is_here = [&](int l) {
        return IsResident(plan_, gpu_, l) ||
               std::any_of(kept.begin(), kept.end(), [l](const Held& one) {
                 return Overlap(one.layers, {l, l});
               });
      };
      int end = layer;
      while (end < cuts_[c + 1] && !is_here(end)) ++end;
      if (end == layer) {
        ++layer;
        continue;
      }
      const Pack run = {layer, end - 1};
      const double bytes = costs_.WeightBytes(run);
      const int op =
          AddOp(Kind::kWeightsIn, Stream::kIn, run, 0, plan_.share(), bytes * share(), 0, 0);
      const int tensor = AddTensor(bytes);
      out_.makes.Add(op, tensor);
      weights_.push_back({run, tensor, op, task_});
      layer = end;
    }
  }
  before = {pack, weights_, true};
}

void ProgramBuilder::BeginTask() {
  for (const Lane& lane : lanes_) {
    gpu_ = GpuOf(lane);
    place_ = static_cast<int>(out_.need[gpu_].size());
    AddWeights();
  }
  if (sharers_ == 1) return;
  const int lanes = static_cast<int>(lanes_.size());
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    if (before_[gpu_].weights[w].task != task_) continue;  // from the previous task
    std::vector<int> parts;
    parts.reserve(lanes);
    for (int gpu = 0; gpu < lanes; ++gpu) parts.push_back(before_[gpu].weights[w].op);
    for (int gpu = 0; gpu < lanes; ++gpu) {
      gpu_ = gpu;
      Held& one = before_[gpu].weights[w];
      const double moved = costs_.WeightBytes(one.layers) * (sharers_ - 1) * share();
      one.op = AddOp(Kind::kGather, Stream::kPeerIn, one.layers, 0, plan_.share(), moved,
                     moved / server_.peer_bytes_per_second, 0);
      for (const int part : parts) Wait(one.op, part);
    }
  }
}

// Sends every lane the parts that the others have updated.
void ProgramBuilder::Gather(Pack layers, const std::vector<int>& updates) {
  const double moved = costs_.WeightBytes(layers) * (sharers_ - 1) * share();
  for (std::size_t lane = 0; lane < updates.size(); ++lane) {
    gpu_ = static_cast<int>(lane);
    const int op = AddOp(Kind::kGather, Stream::kPeerIn, layers, 0, plan_.share(), moved,
                         moved / server_.peer_bytes_per_second, 0);
    for (const int update : updates) Wait(op, update);
  }
}

void ProgramBuilder::WaitForWeights(int op, Pack layers) {
  for (const Held& one : weights_) {
    if (Overlap(one.layers, layers)) Wait(op, one.op);
  }
}

void ProgramBuilder::UseWeights(int op, Pack layers) {
  for (const Held& one : weights_) {
    if (Overlap(one.layers, layers)) out_.uses.Add(op, one.tensor);
  }
}

// After the backward of every lane: gradients are summed, then applied on the host or, for resident
// packs, on the GPU.
void ProgramBuilder::BuildGradients() {
  for (int c = static_cast<int>(cuts_.size()) - 2; c >= 0; --c) {
    const Pack layers = {cuts_[c], cuts_[c + 1] - 1};
    const double bytes = costs_.WeightBytes(layers);
    std::vector<int> updates;  // by lane, on its GPU
    for (const Ready& ready : reduce_[c]) {
      gpu_ = ready.gpu;
      place_ = ready.place;
      int last = ready.op;
      if (sharers_ > 1) {
        const double moved = bytes * (sharers_ - 1) * share();
        last = AddOp(Kind::kReduce, Stream::kPeerIn, layers, 0, plan_.share(), moved,
                     moved / server_.peer_bytes_per_second, 0);
        for (const Ready& other : reduce_[c]) Wait(last, other.op);
      }
      if (task().is_resident) {
        updates.push_back(AddOp(Kind::kUpdate, Stream::kCompute, layers, 0, plan_.share(), 0,
                                server_.UpdateSeconds(bytes * share()), UnitOf(count()) - 1));
        Wait(updates.back(), last);
        out_.uses.Add(updates.back(), ready.tensor);
        out_.last_compute[gpu_].back() = updates.back();
        continue;
      }
      const int out =
          AddOp(Kind::kGradientOut, Stream::kOut, layers, 0, plan_.share(), bytes * share(), 0, 0);
      Wait(out, last);
      out_.uses.Add(out, ready.tensor);
      const int update = AddOp(Kind::kUpdate, Stream::kHost, layers, 0, plan_.share(), 0,
                               costs_.UpdateSeconds(layers) * share() / server_.update_speed, 0);
      Wait(update, out);
    }
    if (sharers_ > 1 && !updates.empty()) Gather(layers, updates);
  }
}

}  // namespace thimble::harmony
