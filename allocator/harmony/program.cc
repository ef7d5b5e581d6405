#include "allocator/harmony/program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "allocator/base/bytes.h"
#include "allocator/harmony/chunks.h"

namespace thimble::harmony {
namespace {

// A tensor with some samples of a boundary, and the op after which it is there.
struct Piece {
  int first_sample = 0;
  int end_sample = 0;
  int tensor = -1;
  int op = 0;
};

// Weights or activations of some layers.
struct Held {
  Pack layers;
  int tensor = 0;
  int op = 0;    // after which they are there
  int task = 0;  // that fetched them
};

void Sort(std::vector<int>& cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

bool Meet(const Pack& a, const Pack& b) { return a.first <= b.last && b.first <= a.last; }

// What builds the tasks of one GPU in dp, and of all of them in pp.
struct Lane {
  std::vector<Piece> outputs;  // of the task before
  int outputs_gpu = 0;         // where they are
  bool outputs_on_host = false;
  std::map<int, std::vector<Piece>> stashes;              // by layer; op: when the host has it
  std::map<std::pair<int, int>, std::vector<Held>> kept;  // activations by task and microbatch
};

class Builder {
 public:
  Builder(const Costs& costs, const Server& server, const Plan& plan, bool one_for_all)
      : costs_(costs), server_(server), plan_(plan), fused_(plan.fused()), heads_(Heads()) {
    const bool is_pipeline = plan.mode == Mode::kPipeline;
    sharers_ = is_pipeline ? 1 : plan.gpus;
    lanes_.resize(one_for_all ? 1 : sharers_);
    before_.resize(plan.gpus);
    out_.queues.resize(static_cast<std::size_t>(plan.gpus) * kStreams);
    out_.need.resize(plan.gpus);
    out_.comfort.resize(plan.gpus);
    out_.last_compute.resize(plan.gpus);
  }

  Program Build() {
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      task_ = static_cast<int>(t);
      cuts_ = ChunkCuts(costs_, plan_.tasks[t].pack);
      for (const Pack& segment : SegmentsDown(plan_.tasks[t])) cuts_.push_back(segment.first);
      Sort(cuts_);
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

 private:
  struct Before {  // the task before on a GPU
    Pack pack;
    std::vector<Held> weights;
    bool is_there = false;
  };

  const Task& task() const { return plan_.tasks[task_]; }
  int count() const { return static_cast<int>(task().microbatches.size()); }
  int size(int i) const { return task().microbatches[i]; }
  double share() const { return 1.0 / sharers_; }

  int AddOp(Kind kind, Stream stream, Pack layers, int first_sample, int end_sample, double bytes,
            double seconds, int microbatch);
  int AddTensor(double bytes) {
    out_.tensors.push_back({gpu_, place_, bytes});
    return static_cast<int>(out_.tensors.size()) - 1;
  }
  void Wait(int op, int other) {
    out_.followers.Add(other, op);
    ++out_.waits[op];
  }
  int Copy(Kind kind, Stream stream, int layer, int first_sample, int end_sample, int microbatch) {
    return AddOp(kind, stream, {layer, layer}, first_sample, end_sample,
                 costs_.InputBytes(end_sample - first_sample, layer), 0, microbatch);
  }

  // Where the forward leaves something for segments of later backward tasks.
  struct Head {
    int task = 0;
    Pack segment;
    int kept = 0;  // of its layers
  };
  std::vector<Head> Heads() const;

  Pack SegmentWith(int layer) const {
    const std::vector<Pack> segments = SegmentsDown(task());
    return *std::find_if(segments.begin(), segments.end(),
                         [layer](const Pack& one) { return one.first <= layer; });
  }

  int GpuOf(const Lane& lane) const {
    return plan_.mode == Mode::kPipeline ? task().gpu : static_cast<int>(&lane - lanes_.data());
  }
  // Weights of all lanes come first: each waits for parts that the others fetch.
  void BeginTask();
  void AddWeights();
  void BuildTask(Lane& lane);
  void BuildNeeds(const Lane& lane);
  // What is there for samples of the boundary below or above, as pieces on this GPU.
  void TakeOutputs(Lane& lane);
  std::vector<Piece> InputOf(Lane& lane, int i, int layer);
  void UsePieces(const std::vector<Piece>& pieces, int i, int first_op, int last_op);
  void WaitForWeights(int op, Pack layers);
  void UseWeights(int op, Pack layers);
  // The activations of `layers` that were kept for microbatch `i`; on the host they are no more.
  std::vector<Held> Fetched(Lane& lane, int i, Pack layers);
  void BuildForward(Lane& lane, int i);
  void BuildBackward(Lane& lane, int i);
  void BuildGradients();
  const Costs& costs_;
  const Server& server_;
  const Plan& plan_;
  const int fused_;
  const std::vector<Head> heads_;
  Program out_;
  int sharers_ = 1;  // GPUs that fetch weights and sum gradients together
  std::vector<Lane> lanes_;
  std::vector<Before> before_;  // by GPU
  int task_ = 0;
  int gpu_ = 0;
  int place_ = 0;
  std::vector<int> cuts_;       // between chunks of the pack
  std::vector<Held> weights_;   // of this task
  std::vector<int> gradients_;  // tensors by chunk, of this task and lane
  std::vector<Piece> outputs_;  // of this task so far
  std::vector<Piece> arrived_;  // boundary pieces on this GPU
  bool next_is_here_ = false;   // the next task of the lane runs on this GPU
  struct Ready {
    int gpu = 0;
    int place = 0;
    int op = 0;
    int tensor = 0;
  };
  std::vector<std::vector<Ready>> reduce_;  // by chunk: the last backward of every lane
};

std::vector<Builder::Head> Builder::Heads() const {
  std::vector<Head> heads;
  for (std::size_t t = fused_ + 1; t < plan_.tasks.size(); ++t) {
    const Task& one = plan_.tasks[t];
    int kept = one.kept_layers;
    for (const Pack& segment : SegmentsDown(one)) {
      const int here = std::min(kept, segment.last - segment.first + 1);
      heads.push_back({static_cast<int>(t), segment, here});
      kept -= here;
    }
  }
  return heads;
}

int Builder::AddOp(Kind kind, Stream stream, Pack layers, int first_sample, int end_sample,
                   double bytes, double seconds, int microbatch) {
  Op op;
  op.step.kind = kind;
  op.step.stream = stream;
  op.step.gpu = gpu_;
  op.step.task = task_;
  op.step.layers = layers;
  op.step.first_sample = first_sample;
  op.step.end_sample = end_sample;
  op.step.bytes = bytes;
  op.place = place_;
  op.microbatch = microbatch;
  op.seconds = seconds;
  const int index = static_cast<int>(out_.ops.size());
  out_.ops.push_back(op);
  out_.waits.push_back(0);
  out_.queues[gpu_ * kStreams + static_cast<int>(stream)].push_back(index);
  return index;
}

// Loads the layers that the task before on this GPU does not have.
void Builder::AddWeights() {
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
    // Of each chunk, the runs of layers that are not here yet.
    for (int layer = cuts_[c]; layer < cuts_[c + 1];) {
      const auto is_here = [&](int l) {
        return std::any_of(kept.begin(), kept.end(), [l](const Held& one) {
          return Meet(one.layers, {l, l});
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

void Builder::BeginTask() {
  for (const Lane& lane : lanes_) {
    gpu_ = GpuOf(lane);
    place_ = static_cast<int>(out_.need[gpu_].size());
    AddWeights();
  }
  if (sharers_ == 1) return;
  const int lanes = static_cast<int>(lanes_.size());
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    if (before_[gpu_].weights[w].task != task_) continue;  // from the task before
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

void Builder::BuildNeeds(const Lane& lane) {
  const Pack pack = task().pack;
  const int largest = size(0);
  const bool later = task_ > fused_;
  double weights = task().is_backward() ? costs_.WeightBytes(pack) : 0;
  for (const Held& one : weights_) {
    if (out_.tensors[one.tensor].place == place_) weights += out_.tensors[one.tensor].bytes;
  }
  double work = 0;
  int kept = later ? task().kept_layers : 0;
  for (const Pack& segment : SegmentsDown(task())) {
    const int here = std::min(kept, segment.last - segment.first + 1);
    const Pack again = {segment.first, segment.last - here};
    const Pack rest = {again.last + 1, segment.last};
    kept -= here;
    const double fetched = here > 0 && task().kept_on_host
                               ? costs_.WorkBytes(Pass::kBackward, largest, rest) +
                                     costs_.InputBytes(largest, rest.first)
                               : 0;
    // Between segments there is the gradient from the one above.
    const double inner =
        segment.last < pack.last ? costs_.InputBytes(largest, segment.last + 1) : 0;
    const double run = again.first > again.last ? 0
                                                : costs_.WorkBytes(task().pass, largest, again) +
                                                      costs_.InputBytes(largest, segment.first);
    work = std::max(work, run + inner + fetched);
  }
  const double below = costs_.InputBytes(largest, pack.first);
  const double above = costs_.InputBytes(largest, pack.last + 1);
  const double gradient = later ? above : 0;
  const double output = task().is_backward() ? (pack.first > 0 ? below : 0) : above;
  double stash = 0;
  for (const Head& head : heads_) {
    const int at = head.segment.first;
    if (!task().is_backward() && at > pack.first && at <= pack.last) {
      stash += costs_.InputBytes(largest, at);
    }
  }
  double need = weights + work + gradient + output + stash;
  if (next_is_here_) need += (count() - 1) * output;
  if (!lane.outputs.empty() && lane.outputs_gpu == gpu_ && !lane.outputs_on_host) {
    need += (count() - 1) * (later ? gradient : below);
  }
  out_.need[gpu_].push_back(need);
  out_.comfort[gpu_].push_back(need + below + gradient + output);
}

// Boundary pieces come to this GPU, unless they are here.
void Builder::TakeOutputs(Lane& lane) {
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
             layer, piece.first_sample, piece.end_sample, first_user);
    Wait(op, piece.op);
    if (!by_host) {
      out_.ops[op].from = lane.outputs_gpu;
      out_.uses.Add(op, piece.tensor);
    }
    piece.tensor = AddTensor(out_.ops[op].step.bytes);
    piece.op = op;
    out_.makes.Add(op, piece.tensor);
  }
}

void Builder::UsePieces(const std::vector<Piece>& pieces, int i, int first_op, int last_op) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  for (const Piece& piece : pieces) {
    if (piece.end_sample <= bounds[i] || piece.first_sample >= bounds[i + 1]) continue;
    Wait(first_op, piece.op);
    out_.uses.Add(last_op, piece.tensor);
  }
}

// The input of `layer` for microbatch `i`, where it does not come from the task before: data or a
// stash.
std::vector<Piece> Builder::InputOf(Lane& lane, int i, int layer) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  if (layer > 0 && task_ <= fused_) return {};
  const int op = Copy(layer == 0 ? Kind::kDataIn : Kind::kStashIn, Stream::kIn, layer, bounds[i],
                      bounds[i + 1], i);
  if (layer > 0) {
    for (const Piece& stash : lane.stashes[layer]) {
      if (stash.first_sample < bounds[i + 1] && stash.end_sample > bounds[i]) Wait(op, stash.op);
    }
  }
  const int tensor = AddTensor(out_.ops[op].step.bytes);
  out_.makes.Add(op, tensor);
  return {{bounds[i], bounds[i + 1], tensor, op}};
}

void Builder::WaitForWeights(int op, Pack layers) {
  for (const Held& one : weights_) {
    if (Meet(one.layers, layers)) Wait(op, one.op);
  }
}

void Builder::UseWeights(int op, Pack layers) {
  for (const Held& one : weights_) {
    if (Meet(one.layers, layers)) out_.uses.Add(op, one.tensor);
  }
}

void Builder::BuildForward(Lane& lane, int i) {
  const Pack pack = task().pack;
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  std::vector<int> cuts = {pack.first, pack.last + 1};
  if (i == 0) cuts = cuts_;
  for (const Pack& segment : SegmentsDown(task())) cuts.push_back(segment.first);
  for (const Head& head : heads_) {
    for (const int cut : {head.segment.first, head.segment.last - head.kept + 1}) {
      if (cut > pack.first && cut <= pack.last) cuts.push_back(cut);
    }
  }
  Sort(cuts);

  const std::vector<Piece> own = InputOf(lane, i, pack.first);
  int first_op = -1;
  int op = -1;
  int work = -1;   // of the segment
  int inner = -1;  // the input of the segment, from the one before
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
    for (const Head& head : heads_) {
      const Pack kept = {head.segment.last - head.kept + 1, head.segment.last};
      if (head.kept > 0 && Meet(kept, layers)) {
        const double input =
            layers.first == kept.first ? costs_.InputBytes(size(i), layers.first) : 0;
        const double bytes = costs_.WorkBytes(Pass::kBackward, size(i), layers) + input;
        const int tensor = AddTensor(bytes);
        out_.makes.Add(op, tensor);
        int there = op;
        if (plan_.tasks[head.task].kept_on_host) {
          there = AddOp(Kind::kActivationsOut, Stream::kOut, layers, bounds[i], bounds[i + 1],
                        bytes, 0, i);
          Wait(there, op);
          out_.uses.Add(there, tensor);
        }
        lane.kept[{head.task, i}].push_back({layers, tensor, there, task_});
      }
      const bool is_stash =
          head.segment.first == layers.first && layers.first > 0 && kept.first > head.segment.first;
      if (!is_stash) continue;
      std::vector<Piece> sources;
      if (before >= 0) {
        const int tensor = AddTensor(costs_.InputBytes(size(i), layers.first));
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
        const int out = Copy(Kind::kStashOut, Stream::kOut, layers.first, source.first_sample,
                             source.end_sample, i);
        Wait(out, source.op);
        out_.uses.Add(out, source.tensor);
        lane.stashes[layers.first].push_back({source.first_sample, source.end_sample, -1, out});
      }
    }
  }
  UsePieces(own.empty() ? arrived_ : own, i, first_op, op);
  const int output = AddTensor(costs_.InputBytes(size(i), pack.last + 1));
  out_.makes.Add(op, output);
  outputs_.push_back({bounds[i], bounds[i + 1], output, op});
}

std::vector<Held> Builder::Fetched(Lane& lane, int i, Pack layers) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  std::vector<Held> result;
  for (Held one : lane.kept[{task_, i}]) {
    if (!Meet(one.layers, layers)) continue;
    if (task().kept_on_host) {
      const double bytes = out_.tensors[one.tensor].bytes;
      const int op = AddOp(Kind::kActivationsIn, Stream::kIn, one.layers, bounds[i], bounds[i + 1],
                           bytes, 0, i);
      Wait(op, one.op);
      one.tensor = AddTensor(bytes);
      one.op = op;
      out_.makes.Add(op, one.tensor);
    }
    result.push_back(one);
  }
  return result;
}

void Builder::BuildBackward(Lane& lane, int i) {
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  const bool later = task_ > fused_;
  const bool is_last = i == count() - 1;
  int kept = later ? task().kept_layers : 0;
  std::vector<Piece> above = arrived_;  // the gradient from above
  for (const Pack& segment : SegmentsDown(task())) {
    const int here = std::min(kept, segment.last - segment.first + 1);
    const Pack again = {segment.first, segment.last - here};
    kept -= here;
    int first_op = -1;
    int op = -1;
    int work = -1;
    const auto run = [&](Kind kind, Pack layers) {
      const double seconds = kind == Kind::kBackward
                                 ? costs_.BackwardSeconds(size(i), layers)
                                 : costs_.Seconds(Pass::kForward, size(i), layers);
      op = AddOp(kind, Stream::kCompute, layers, bounds[i], bounds[i + 1], 0, seconds, i);
      if (first_op < 0) first_op = op;
      if (i == 0) WaitForWeights(op, layers);
    };
    // The first microbatch waits for weights chunk by chunk, the last one lets go of them so.
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
    if (again.first <= again.last) {
      own = InputOf(lane, i, segment.first);
      for (const Pack& part : chunks(again, i > 0)) run(Kind::kRecompute, part);
      work = AddTensor(costs_.WorkBytes(Pass::kBackward, size(i), again));
      out_.makes.Add(first_op, work);
    }
    const std::vector<Held> stored =
        here > 0 ? Fetched(lane, i, {again.last + 1, segment.last}) : std::vector<Held>();
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
    for (const Held& one : stored) {
      Wait(first_back, one.op);
      out_.uses.Add(op, one.tensor);
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
  }
  outputs_.push_back(above[0]);
}

// Every lane has run its backward: gradients are summed, go to the host and are applied there.
void Builder::BuildGradients() {
  for (int c = static_cast<int>(cuts_.size()) - 2; c >= 0; --c) {
    const Pack layers = {cuts_[c], cuts_[c + 1] - 1};
    const double bytes = costs_.WeightBytes(layers);
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
      const int out =
          AddOp(Kind::kGradientOut, Stream::kOut, layers, 0, plan_.share(), bytes * share(), 0, 0);
      Wait(out, last);
      out_.uses.Add(out, ready.tensor);
      const int update = AddOp(Kind::kUpdate, Stream::kHost, layers, 0, plan_.share(), 0,
                               costs_.UpdateSeconds(layers) * share() / server_.update_speed, 0);
      Wait(update, out);
    }
  }
}

void Builder::BuildTask(Lane& lane) {
  const bool is_pipeline = plan_.mode == Mode::kPipeline;
  gpu_ = GpuOf(lane);
  place_ = static_cast<int>(out_.need[gpu_].size());
  weights_ = before_[gpu_].weights;
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
  // What a GPU hands to itself waits on the host, if there is no room for all of it.
  const bool by_host =
      has_next && (plan_.boundaries_on_host ||
                   (next_is_here_ && out_.need[gpu_].back() > server_.memory_bytes));
  for (int i = 0; i < count(); ++i) {
    if (task().is_backward()) {
      BuildBackward(lane, i);
    } else {
      BuildForward(lane, i);
    }
  }
  out_.last_compute[gpu_].push_back(
      out_.queues[gpu_ * kStreams + static_cast<int>(Stream::kCompute)].back());
  if (by_host) {
    const int layer = task().is_backward() ? task().pack.first : task().pack.last + 1;
    const double output = costs_.InputBytes(size(0), layer);
    if (next_is_here_) {
      out_.need[gpu_].back() -= (count() - 1) * output;
      out_.comfort[gpu_].back() -= (count() - 1) * output;
    }
    for (Piece& piece : outputs_) {
      const int op =
          Copy(Kind::kBoundaryOut, Stream::kOut, layer, piece.first_sample, piece.end_sample, 0);
      Wait(op, piece.op);
      out_.uses.Add(op, piece.tensor);
      piece.op = op;
    }
  }
  lane.outputs = outputs_;
  lane.outputs_gpu = gpu_;
  lane.outputs_on_host = by_host;
}

}  // namespace

void Lists::Finish(int count) {
  starts_.assign(count + 1, 0);
  for (const Pair& pair : pairs_) ++starts_[pair.index + 1];
  for (int i = 0; i < count; ++i) starts_[i + 1] += starts_[i];
  std::vector<int> next(starts_.begin(), starts_.end() - 1);
  values_.resize(pairs_.size());
  for (const Pair& pair : pairs_) values_[next[pair.index]++] = pair.value;
  pairs_.clear();
}

Program BuildProgram(const Costs& costs, const Server& server, const Plan& plan, bool one_for_all) {
  return Builder(costs, server, plan, one_for_all).Build();
}

}  // namespace thimble::harmony
