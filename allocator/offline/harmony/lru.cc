#include "allocator/offline/harmony/lru.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace thimble::harmony {
namespace {

enum What { kWeights, kGradients, kOptimizer, kActivations, kInput, kWhats };

// One GPU's memory. Tensors are numbers below a limit; two arrays hold the list of those in memory.
class Memory {
 public:
  Memory(double bytes, int tensors)
      : room_(bytes), before_(tensors + 1), after_(tensors + 1), state_(tensors), end_(tensors) {
    before_[end_] = after_[end_] = end_;
  }

  double in() const { return in_; }
  double out() const { return out_; }

  // `fresh`: the tensor is made here, so nothing is fetched. Tensors used together share a `group`,
  // an increasing number, and never evict each other.
  void Use(int tensor, double bytes, bool write, bool fresh, std::uint64_t group) {
    if (bytes <= 0) return;
    State& state = state_[tensor];
    if (state.is_here) {
      Unlink(tensor);
    } else {
      Evict(bytes, group);
      if (!fresh) in_ += bytes;
      state.is_here = true;
      state.is_dirty = fresh;
      state.bytes = bytes;
      used_ += bytes;
    }
    state.is_dirty = state.is_dirty || write;
    state.group = group;
    LinkFirst(tensor);
  }

  void Drop(int tensor) {
    if (state_[tensor].is_here) Remove(tensor);
  }

 private:
  struct State {
    double bytes = 0;
    std::uint64_t group = 0;
    bool is_here = false;
    bool is_dirty = false;
  };

  void Unlink(int tensor) {
    after_[before_[tensor]] = after_[tensor];
    before_[after_[tensor]] = before_[tensor];
  }
  void LinkFirst(int tensor) {
    before_[tensor] = end_;
    after_[tensor] = after_[end_];
    before_[after_[end_]] = tensor;
    after_[end_] = tensor;
  }
  void Remove(int tensor) {
    Unlink(tensor);
    used_ -= state_[tensor].bytes;
    state_[tensor].is_here = false;
  }
  void Evict(double bytes, std::uint64_t group) {
    while (used_ + bytes > room_) {
      const int last = before_[end_];
      if (last == end_ || state_[last].group == group) return;
      if (state_[last].is_dirty) out_ += state_[last].bytes;
      Remove(last);
    }
  }

  const double room_;
  double used_ = 0;
  double in_ = 0;
  double out_ = 0;
  std::vector<int> before_;
  std::vector<int> after_;
  std::vector<State> state_;
  const int end_;
};

struct Part {  // one GPU's part of an iteration
  double in = 0;
  double out = 0;
  double seconds = 0;  // of computing
};

class OneGpu {
 public:
  OneGpu(const Costs& costs, double memory_bytes, Pack layers, int size, int count, bool recompute)
      : costs_(costs),
        layers_(layers),
        size_(size),
        count_(count),
        recompute_(recompute),
        memory_(memory_bytes, (layers.last - layers.first + 1) * kWhats * count) {}

  // `ahead`: forwards before the first backward. Measures the second iteration, because the first
  // begins with empty memory.
  Part Run(int ahead) {
    Part first;
    for (int iteration = 0; iteration < 2; ++iteration) {
      first.in = memory_.in();
      first.out = memory_.out();
      seconds_ = 0;
      int back = 0;
      for (int i = 0; i < count_; ++i) {
        Forward(i);
        if (i - back + 1 >= ahead) Backward(back++);
      }
      while (back < count_) Backward(back++);
      Update();
    }
    return {memory_.in() - first.in, memory_.out() - first.out, seconds_};
  }

 private:
  int Number(What what, int layer, int i = 0) const {
    return ((layer - layers_.first) * count_ + i) * kWhats + what;
  }
  double Activations(int layer) const {
    const Pack one = {layer, layer};
    return std::max(costs_.PeakBytes(Pass::kBackward, size_, one) - 2 * costs_.WeightBytes(one),
                    costs_.InputBytes(size_, layer));
  }
  void Forward(int i) {
    for (int layer = layers_.first; layer <= layers_.last; ++layer) {
      const Pack one = {layer, layer};
      ++group_;
      memory_.Use(Number(kWeights, layer), costs_.WeightBytes(one), false, false, group_);
      if (recompute_) {
        memory_.Use(Number(kInput, layer, i), costs_.InputBytes(size_, layer), true, true, group_);
      } else {
        memory_.Use(Number(kActivations, layer, i), Activations(layer), true, true, group_);
      }
      seconds_ += costs_.Seconds(Pass::kForward, size_, one);
    }
  }
  void Backward(int i) {
    for (int layer = layers_.last; layer >= layers_.first; --layer) {
      const Pack one = {layer, layer};
      ++group_;
      memory_.Use(Number(kWeights, layer), costs_.WeightBytes(one), false, false, group_);
      if (recompute_) {
        memory_.Use(Number(kInput, layer, i), costs_.InputBytes(size_, layer), false, false,
                    group_);
      }
      memory_.Use(Number(kActivations, layer, i), Activations(layer), recompute_, recompute_,
                  group_);
      memory_.Use(Number(kGradients, layer), costs_.WeightBytes(one), true, i == 0, group_);
      memory_.Drop(Number(kActivations, layer, i));
      memory_.Drop(Number(kInput, layer, i));
      seconds_ += recompute_ ? costs_.Seconds(Pass::kBackward, size_, one)
                             : costs_.BackwardSeconds(size_, one);
    }
  }
  void Update() {
    for (int layer = layers_.first; layer <= layers_.last; ++layer) {
      const double bytes = costs_.WeightBytes({layer, layer});
      ++group_;
      memory_.Use(Number(kWeights, layer), bytes, true, false, group_);
      memory_.Use(Number(kGradients, layer), bytes, true, false, group_);
      memory_.Use(Number(kOptimizer, layer), kStateCopies * bytes, true, false, group_);
      memory_.Drop(Number(kGradients, layer));
    }
  }

  const Costs& costs_;
  const Pack layers_;
  const int size_;
  const int count_;
  const bool recompute_;
  Memory memory_;
  std::uint64_t group_ = 0;
  double seconds_ = 0;
};

bool FitsLayerByLayer(const Costs& costs, int size, double memory_bytes) {
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    if (costs.PeakBytes(Pass::kBackward, size, {layer, layer}) > memory_bytes) return false;
  }
  return true;
}

// Divides the layers into parts that take about the same time.
std::vector<Pack> Stages(const Costs& costs, int size, int gpus) {
  const int layers = costs.layer_count();
  const auto until = [&](int layer) {
    return costs.Seconds(Pass::kForward, size, {0, layer}) +
           costs.Seconds(Pass::kBackward, size, {0, layer});
  };
  const double all = until(layers - 1);
  std::vector<Pack> stages;
  int first = 0;
  for (int stage = 0; stage < gpus && first < layers; ++stage) {
    int last = first;
    while (last + 1 < layers && (stage + 1 == gpus || until(last) < all * (stage + 1) / gpus)) {
      ++last;
    }
    stages.push_back({first, last});
    first = last + 1;
  }
  return stages;
}

}  // namespace

std::optional<Baseline> LruBaseline(const Costs& costs, const Server& server, int batch, Mode mode,
                                    bool recompute) {
  const int gpus = server.gpu_count();
  const bool is_pipeline = mode == Mode::kPipeline;
  if (!is_pipeline && batch % gpus != 0) return std::nullopt;
  const int share = is_pipeline ? batch : batch / gpus;
  const double rate = server.HostBytesPerSecond() / gpus;
  const Pack all = {0, costs.layer_count() - 1};
  std::optional<Baseline> best;
  for (int size = 1; size <= std::min(share, costs.largest()); ++size) {
    if (share % size != 0 || !FitsLayerByLayer(costs, size, server.memory_bytes)) continue;
    const int count = share / size;
    Baseline one;
    one.microbatch = size;
    double computing = 0;
    if (is_pipeline) {
      const std::vector<Pack> stages = Stages(costs, size, gpus);
      for (std::size_t i = 0; i < stages.size(); ++i) {
        const int ahead = std::min(count, static_cast<int>(stages.size() - i));
        const Part part =
            OneGpu(costs, server.memory_bytes, stages[i], size, count, recompute).Run(ahead);
        one.seconds = std::max(one.seconds, part.seconds + std::max(part.in, part.out) / rate);
        one.swap_bytes += part.in + part.out;
        computing += part.seconds / gpus;
      }
      one.seconds *= static_cast<double>(count + gpus - 1) / count;  // filling and draining
    } else {
      const Part part = OneGpu(costs, server.memory_bytes, all, size, count, recompute).Run(1);
      const double reduction =
          2.0 * (gpus - 1) / gpus * costs.WeightBytes(all) / server.peer_bytes_per_second;
      one.seconds = part.seconds + reduction + std::max(part.in, part.out) / rate;
      one.swap_bytes = (part.in + part.out) * gpus;
      computing = part.seconds;
    }
    one.compute_fraction = computing / one.seconds;
    if (!best.has_value() || one.seconds < best->seconds) best = one;
  }
  return best;
}

}  // namespace thimble::harmony
