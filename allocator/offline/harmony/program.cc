#include "allocator/offline/harmony/program.h"

#include <algorithm>
#include <utility>

#include "allocator/offline/harmony/chunks.h"
#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

void Lists::Finish(int count) {
  starts_.assign(count + 1, 0);
  for (const Pair& pair : pairs_) ++starts_[pair.index + 1];
  for (int i = 0; i < count; ++i) starts_[i + 1] += starts_[i];
  std::vector<int> next(starts_.begin(), starts_.end() - 1);
  values_.resize(pairs_.size());
  for (const Pair& pair : pairs_) values_[next[pair.index]++] = pair.value;
  pairs_.clear();
}

void SortCuts(std::vector<int>& cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

ProgramBuilder::ProgramBuilder(const Costs& costs, const Server& server, const Plan& plan,
                               bool one_for_all)
    : costs_(costs), server_(server), plan_(plan), fused_(plan.fused()), later_(LaterSegments()) {
  const bool is_pipeline = plan.mode == Mode::kPipeline;
  sharers_ = is_pipeline ? 1 : plan.gpus;
  lanes_.resize(one_for_all ? 1 : sharers_);
  before_.resize(plan.gpus);
  out_.queues.resize(static_cast<std::size_t>(plan.gpus) * kStreams);
  out_.need.resize(plan.gpus);
  out_.preferred.resize(plan.gpus);
  out_.units.resize(plan.gpus);
  for (int gpu = 0; gpu < plan.gpus; ++gpu) {
    out_.resident.push_back(ResidentBytes(costs, plan, gpu));
  }
  out_.last_compute.resize(plan.gpus);
}

std::vector<ProgramBuilder::Later> ProgramBuilder::LaterSegments() const {
  std::vector<Later> later;
  for (std::size_t t = fused_ + 1; t < plan_.tasks.size(); ++t) {
    for (const Segment& segment : SegmentsDown(plan_.tasks[t])) {
      later.push_back({static_cast<int>(t), segment});
    }
  }
  return later;
}

Program ProgramBuilder::Build() {
  for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
    task_ = static_cast<int>(t);
    cuts_ = ChunkCuts(costs_, plan_.tasks[t].pack);
    for (const Segment& one : SegmentsDown(plan_.tasks[t])) cuts_.push_back(one.layers.first);
    SortCuts(cuts_);
    reduce_.assign(cuts_.size() - 1, {});
    BeginTask();
    for (Lane& lane : lanes_) BuildTask(lane);
    if (task().is_backward()) BuildGradients();
  }
  const int ops = static_cast<int>(out_.ops.size());
  out_.users.assign(out_.tensors.size(), 0);
  out_.followers.Finish(ops);
  out_.makes.Finish(ops);
  out_.uses.Finish(ops);
  for (int op = 0; op < ops; ++op) {
    for (const int* t = out_.uses.begin(op); t != out_.uses.end(op); ++t) ++out_.users[*t];
  }
  return std::move(out_);
}

int ProgramBuilder::AddOp(Kind kind, Stream stream, Pack layers, int first_sample, int end_sample,
                          double bytes, double seconds, int unit) {
  Op op;
  op.action.kind = kind;
  op.action.stream = stream;
  op.action.gpu = gpu_;
  op.action.task = task_;
  op.action.layers = layers;
  op.action.first_sample = first_sample;
  op.action.end_sample = end_sample;
  op.action.bytes = bytes;
  op.place = place_;
  op.unit = unit;
  op.seconds = seconds;
  const int index = static_cast<int>(out_.ops.size());
  out_.ops.push_back(op);
  out_.waits.push_back(0);
  out_.queues[gpu_ * kStreams + static_cast<int>(stream)].push_back(index);
  return index;
}

void ProgramBuilder::BuildTask(Lane& lane) {
  const bool is_pipeline = plan_.mode == Mode::kPipeline;
  gpu_ = GpuOf(lane);
  place_ = static_cast<int>(out_.need[gpu_].size());
  weights_ = before_[gpu_].weights;
  units_ = task().is_backward() ? std::max<int>(1, static_cast<int>(task().segments.size())) : 1;
  out_.units[gpu_].push_back(count() * units_);
  const bool has_next = task_ + 1 < static_cast<int>(plan_.tasks.size());
  next_is_here_ = has_next && (!is_pipeline || plan_.tasks[task_ + 1].gpu == gpu_);
  outputs_.clear();
  gradients_.clear();
  if (task().is_backward()) {
    for (std::size_t c = 0; c + 1 < cuts_.size(); ++c) {
      gradients_.push_back(AddTensor(costs_.WeightBytes({cuts_[c], cuts_[c + 1] - 1})));
    }
  }
  BuildNeeds(lane);
  TakeOutputs(lane);
  // Outputs for a task on the same GPU wait on the host if they do not all fit.
  const bool by_host =
      has_next &&
      (plan_.boundaries_on_host ||
       (next_is_here_ && out_.need[gpu_].back() > server_.memory_bytes - out_.resident[gpu_]));
  for (int i = 0; i < count(); ++i) {
    if (task().is_backward()) {
      BuildBackward(lane, i);
    } else {
      BuildForward(lane, i);
    }
  }
  out_.last_compute[gpu_].push_back(
      out_.queues[gpu_ * kStreams + static_cast<int>(Stream::kCompute)].back());
  if (by_host) HandOverByHost();
  lane.outputs = outputs_;
  lane.outputs_gpu = gpu_;
  lane.outputs_on_host = by_host;
}

// Sends the outputs to the host, where they wait for the next task.
void ProgramBuilder::HandOverByHost() {
  const int layer = task().is_backward() ? task().pack.first : task().pack.last + 1;
  const double output = costs_.InputBytes(size(0), layer);
  if (next_is_here_) {
    out_.need[gpu_].back() -= (count() - 1) * output;
    out_.preferred[gpu_].back() -= (count() - 1) * output;
  }
  for (Piece& piece : outputs_) {
    const int op =
        Copy(Kind::kBoundaryOut, Stream::kOut, layer, piece.first_sample, piece.end_sample, 0);
    Wait(op, piece.op);
    out_.uses.Add(op, piece.tensor);
    piece.op = op;
  }
}

Program BuildProgram(const Costs& costs, const Server& server, const Plan& plan, bool one_for_all) {
  return ProgramBuilder(costs, server, plan, one_for_all).Build();
}

}  // namespace thimble::harmony
