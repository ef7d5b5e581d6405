// The memory of every GPU over time, from the actions of a schedule. program.h says what counts and
// when.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/action_index.h"

namespace thimble::harmony {
namespace {

class Ledger {
 public:
  Ledger(const Costs& costs, const ActionIndex& index)
      : costs_(costs),
        index_(index),
        plan_(index.plan()),
        fused_(plan_.fused()),
        changes_(plan_.gpus) {
    for (int lane = 0; lane < index.lanes(); ++lane) {
      lane_ = lane;
      for (int t = 0; t < static_cast<int>(plan_.tasks.size()); ++t) {
        Weights(t);
        Residents(t);
        if (plan_.tasks[t].is_backward()) Gradients(t);
        Arrivals(t);
        const std::vector<int> bounds = SampleBounds(plan_.tasks[t].microbatches);
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
          if (plan_.tasks[t].is_backward()) {
            Backward(t, bounds[i], bounds[i + 1]);
          } else {
            Forward(t, bounds[i], bounds[i + 1]);
          }
        }
      }
    }
  }

  double Peak(int gpu) {
    std::vector<Change>& changes = changes_[gpu];
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time < b.time || (a.time == b.time && a.bytes < b.bytes);
    });
    double bytes = 0;
    double peak = 0;
    for (const Change& change : changes) {
      bytes += change.bytes;
      peak = std::max(peak, bytes);
    }
    return peak;
  }

 private:
  struct Change {
    double time = 0;
    double bytes = 0;
  };

  void Hold(int gpu, double bytes, double from, double until) {
    changes_[gpu].push_back({from, bytes});
    changes_[gpu].push_back({until, -bytes});
  }
  int GpuOf(int t) const { return index_.GpuOf(lane_, t); }
  bool IsLater(int t) const { return t > fused_; }
  ActionIndex::Actions Find(int t, Kind kind, Pack layers, int first, int end) const {
    return index_.Find(GpuOf(t), t, kind, layers, first, end);
  }
  static double LastEnd(const ActionIndex::Actions& actions) {
    double end = 0;
    for (const Action* action : actions) end = std::max(end, action->end);
    return end;
  }
  ActionIndex::Actions Computing(int t, Pack layers, int first, int end) const {
    ActionIndex::Actions actions;
    for (const Kind kind : {Kind::kForward, Kind::kRecompute, Kind::kBackward}) {
      for (const Action* action : Find(t, kind, layers, first, end)) actions.push_back(action);
    }
    return actions;
  }

  void Weights(int t);
  void Residents(int t);
  void Gradients(int t);
  void Arrivals(int t);
  void Forward(int t, int first, int end);
  void Backward(int t, int first, int end);
  // When the next task has finished with these samples of the output of `t`.
  double HandedOn(int t, int layer, int first, int end) const;
  // When the microbatches of `t` with any of these samples have finished with the boundary.
  double Consumed(int t, int first, int end) const;
  void Keep(int t, const Action& action);

  const Costs& costs_;
  const ActionIndex& index_;
  const Plan& plan_;
  const int fused_;
  int lane_ = 0;
  std::vector<std::vector<Change>> changes_;  // by GPU
};

void Ledger::Weights(int t) {
  const int gpu = GpuOf(t);
  const std::vector<int>& tasks = index_.TasksOf(gpu);
  for (const Action* in : index_.Find(gpu, t, Kind::kWeightsIn)) {
    double until = in->end;
    Pack layers = in->layers;
    for (auto at = std::find(tasks.begin(), tasks.end(), t); at != tasks.end(); ++at) {
      const Pack pack = plan_.tasks[*at].pack;
      layers = {std::max(layers.first, pack.first), std::min(layers.last, pack.last)};
      if (layers.first > layers.last) break;
      // A later task keeps the weights if it does not fetch them itself.
      if (*at != t && !index_.Find(gpu, *at, Kind::kWeightsIn, layers, 0, plan_.share()).empty()) {
        break;
      }
      until = std::max(until, LastEnd(Computing(*at, layers, 0, plan_.share())));
    }
    Hold(gpu, costs_.WeightBytes(in->layers), in->begin, until);
  }
}

void Ledger::Residents(int t) {
  if (!plan_.tasks[t].is_resident) return;
  const double weights = costs_.WeightBytes(plan_.tasks[t].pack);
  Hold(GpuOf(t), weights + kStateCopies * weights / index_.lanes(), 0, index_.schedule().seconds);
}

void Ledger::Gradients(int t) {
  const int first_end = plan_.tasks[t].microbatches[0];
  const double from = Find(t, Kind::kBackward, plan_.tasks[t].pack, 0, first_end).front()->begin;
  const Kind last = plan_.tasks[t].is_resident ? Kind::kUpdate : Kind::kGradientOut;
  for (const Action* action : index_.Find(GpuOf(t), t, last)) {
    Hold(GpuOf(t), costs_.WeightBytes(action->layers), from, action->end);
  }
}

double Ledger::Consumed(int t, int first, int end) const {
  const Task& task = plan_.tasks[t];
  const std::vector<int> bounds = SampleBounds(task.microbatches);
  // A later backward task needs the gradient from above until its uppermost segment has run.
  const Pack layers = IsLater(t) ? SegmentsDown(task).front().layers : task.pack;
  double time = 0;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i] >= end || bounds[i + 1] <= first) continue;
    time = std::max(time, LastEnd(Computing(t, layers, bounds[i], bounds[i + 1])));
  }
  if (!task.is_backward()) {
    time = std::max(
        time, LastEnd(Find(t, Kind::kStashOut, {task.pack.first, task.pack.first}, first, end)));
  }
  return time;
}

// What comes from other GPUs or back from the host.
void Ledger::Arrivals(int t) {
  for (const Kind kind : {Kind::kReceive, Kind::kBoundaryIn}) {
    for (const Action* in : index_.Find(GpuOf(t), t, kind)) {
      Hold(GpuOf(t), in->bytes, in->begin, Consumed(t, in->first_sample, in->end_sample));
    }
  }
}

double Ledger::HandedOn(int t, int layer, int first, int end) const {
  const int next = t + 1;
  const ActionIndex::Actions outs = Find(t, Kind::kBoundaryOut, {layer, layer}, first, end);
  if (!outs.empty()) return LastEnd(outs);
  if (GpuOf(next) == GpuOf(t)) return Consumed(next, first, end);
  return LastEnd(Find(next, Kind::kReceive, {layer, layer}, first, end));
}

// Activations of layers that are not run forward again.
void Ledger::Keep(int t, const Action& action) {
  const int size = action.end_sample - action.first_sample;
  for (int later = fused_ + 1; later < static_cast<int>(plan_.tasks.size()); ++later) {
    for (const auto& [layers, keep] : SegmentsDown(plan_.tasks[later])) {
      if (keep == Keep::kNothing || !Overlap(layers, action.layers)) continue;
      double bytes = costs_.WorkBytes(Pass::kBackward, size, action.layers);
      if (action.layers.first == layers.first) bytes += costs_.InputBytes(size, layers.first);
      const double done =
          LastEnd(Find(later, Kind::kBackward, layers, action.first_sample, action.end_sample));
      if (keep == Keep::kOnGpu) {
        Hold(GpuOf(t), bytes, action.begin, done);
        continue;
      }
      Hold(GpuOf(t), bytes, action.begin,
           LastEnd(Find(t, Kind::kActivationsOut, action.layers, action.first_sample,
                        action.end_sample)));
      for (const Action* in : Find(later, Kind::kActivationsIn, action.layers, action.first_sample,
                                   action.end_sample)) {
        Hold(GpuOf(later), bytes, in->begin, done);
      }
    }
  }
}

void Ledger::Forward(int t, int first, int end) {
  const Task& task = plan_.tasks[t];
  const int gpu = GpuOf(t);
  const int size = end - first;
  const ActionIndex::Actions actions = Find(t, Kind::kForward, task.pack, first, end);
  for (const Action* in : Find(t, Kind::kDataIn, task.pack, first, end)) {
    Hold(gpu, in->bytes, in->begin, actions.back()->end);
  }
  const std::vector<Segment> segments = SegmentsDown(task);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Pack layers = segments[i].layers;
    const ActionIndex::Actions own = Find(t, Kind::kForward, layers, first, end);
    Hold(gpu, costs_.WorkBytes(Pass::kForward, size, layers), own.front()->begin, own.back()->end);
    if (i == 0) continue;  // the last segment's output goes to the next task
    const ActionIndex::Actions next = Find(t, Kind::kForward, segments[i - 1].layers, first, end);
    Hold(gpu, costs_.InputBytes(size, layers.last + 1), own.back()->begin, next.back()->end);
  }
  for (const Action* action : actions) {
    Keep(t, *action);
    const int layer = action->layers.last + 1;  // if it is stashed, this action has made it
    for (const Action* out : Find(t, Kind::kStashOut, {layer, layer}, first, end)) {
      if (layer <= task.pack.last) Hold(gpu, out->bytes, action->begin, out->end);
    }
  }
  const int layer = task.pack.last + 1;
  Hold(gpu, costs_.InputBytes(size, layer), actions.back()->begin, HandedOn(t, layer, first, end));
}

void Ledger::Backward(int t, int first, int end) {
  const Task& task = plan_.tasks[t];
  const int gpu = GpuOf(t);
  const int size = end - first;
  double made = 0;  // when the gradient for the segment below began
  for (const auto& [segment, keep] : SegmentsDown(task)) {
    const ActionIndex::Actions actions = Find(t, Kind::kBackward, segment, first, end);
    const double done = actions.back()->end;
    if (keep == Keep::kNothing) {
      Hold(gpu, costs_.WorkBytes(Pass::kBackward, size, segment),
           Find(t, Kind::kRecompute, segment, first, end).front()->begin, done);
      for (const Kind kind : {Kind::kDataIn, Kind::kStashIn}) {
        for (const Action* in : Find(t, kind, {segment.first, segment.first}, first, end)) {
          Hold(gpu, in->bytes, in->begin, done);
        }
      }
    }
    if (segment.last < task.pack.last) {
      Hold(gpu, costs_.InputBytes(size, segment.last + 1), made, done);
    }
    made = actions.back()->begin;
  }
  if (task.pack.first == 0) return;
  Hold(gpu, costs_.InputBytes(size, task.pack.first), made,
       HandedOn(t, task.pack.first, first, end));
}

}  // namespace

absl::Status CheckMemory(const Costs& costs, const ActionIndex& index, double memory_bytes) {
  Ledger ledger(costs, index);
  const std::vector<double>& claimed = index.schedule().peak_bytes;
  if (static_cast<int>(claimed.size()) != index.plan().gpus) {
    return Wrong(absl::StrCat("the schedule has peaks of ", claimed.size(), " GPUs"));
  }
  for (int gpu = 0; gpu < index.plan().gpus; ++gpu) {
    const double peak = ledger.Peak(gpu);
    if (peak > memory_bytes * (1 + 1e-9)) {
      return Wrong(absl::StrCat("GPU ", gpu, " has ", static_cast<std::int64_t>(peak),
                                " bytes in memory at once, more than ",
                                static_cast<std::int64_t>(memory_bytes)));
    }
    if (std::abs(peak - claimed[gpu]) > 1e-6 * memory_bytes) {
      return Wrong(absl::StrCat("GPU ", gpu, " has ", static_cast<std::int64_t>(peak),
                                " bytes in memory at once, not ",
                                static_cast<std::int64_t>(claimed[gpu])));
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
