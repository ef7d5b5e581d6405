#include "allocator/harmony/validator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/harmony/network.h"
#include "allocator/harmony/step_index.h"

namespace thimble::harmony {
namespace {

bool IsFar(double a, double b) { return std::abs(a - b) > 1e-6 * std::max({1.0, a, b}); }

class Checker {
 public:
  Checker(const Costs& costs, const Server& server, const Schedule& schedule)
      : costs_(costs),
        server_(server),
        schedule_(schedule),
        plan_(schedule.plan),
        index_(schedule),
        fused_(plan_.fused()) {}

  static absl::Status WholePlan(const Costs& costs, const Server& server, const Plan& plan);
  absl::Status Steps() const;
  absl::Status Streams() const;
  absl::Status Tasks() const;
  absl::Status Gradients() const;
  absl::Status Links() const;
  absl::Status Sums() const;

 private:
  bool IsLater(int t) const { return t > fused_; }
  bool IsThimble() const { return plan_.rules == Rules::kThimble; }

  absl::Status Forward(int lane, int t, int first, int end) const;
  absl::Status Backward(int lane, int t, int first, int end) const;
  // Steps of `kind` run through `layers` one after the other; `time` moves to the end of the last.
  absl::Status Chain(int lane, int t, Kind kind, Pack layers, int first, int end,
                     double& time) const;
  absl::Status Weights(const Step& step) const;
  absl::Status Boundary(int lane, int t, int layer, const Step& user) const;
  absl::Status Stash(int lane, int t, int layer, const Step& user) const;
  absl::Status Kept(int lane, int t, Pack layers, const Step& user) const;
  absl::Status Late(const Step& user, const char* what, double there) const {
    return Wrong(
        absl::StrCat(StepIndex::Name(user), " begins at ", user.begin, " s, but ", what,
                     there < 0 ? " is never there" : absl::StrCat(" is there at ", there, " s")));
  }

  const Costs& costs_;
  const Server& server_;
  const Schedule& schedule_;
  const Plan& plan_;
  const StepIndex index_;
  const int fused_;
};

absl::Status Checker::WholePlan(const Costs& costs, const Server& server, const Plan& plan) {
  if (plan.gpus != server.gpu_count()) {
    return Wrong(absl::StrCat("the plan is for ", plan.gpus, " GPUs of ", server.gpu_count()));
  }
  if (plan.mode == Mode::kDataParallel && plan.batch % plan.gpus != 0) {
    return Wrong(absl::StrCat(plan.batch, " samples cannot be split among ", plan.gpus, " GPUs"));
  }
  int next = 0;                     // layer that the next forward pack begins with
  int above = costs.layer_count();  // layer before which the next backward pack ends
  bool is_backward = false;
  for (const Task& task : plan.tasks) {
    const bool is_first_backward = task.is_backward() && !is_backward;
    if (is_backward && !task.is_backward()) return Wrong("a forward task follows a backward one");
    is_backward = task.is_backward();
    const bool fits = is_backward ? task.pack.last == above - 1 : task.pack.first == next;
    if (!fits || task.pack.first > task.pack.last || task.pack.first < 0 ||
        task.pack.last >= costs.layer_count() || (is_first_backward && task.pack.first != next)) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " does not follow the one before"));
    }
    next = task.pack.last + 1;
    above = is_backward ? task.pack.first : above;
    int samples = 0;
    for (const int size : task.microbatches) {
      if (size < 1 || size > costs.largest()) {
        return Wrong(absl::StrCat("a microbatch has ", size, " samples"));
      }
      samples += size;
    }
    if (samples != plan.share()) {
      return Wrong(absl::StrCat("layers ", task.pack.first, " to ", task.pack.last, " see ",
                                samples, " samples of ", plan.share()));
    }
    const bool has_gpu = plan.mode == Mode::kPipeline;
    if (has_gpu ? task.gpu < 0 || task.gpu >= plan.gpus : task.gpu != kEveryGpu) {
      return Wrong(absl::StrCat("there is no GPU ", task.gpu));
    }
    int before = task.pack.first - 1;
    for (const int first : task.segments) {
      if (first <= before || first > task.pack.last ||
          (before < task.pack.first && first != task.pack.first)) {
        return Wrong(absl::StrCat("a segment begins with layer ", first));
      }
      before = first;
    }
    if ((is_first_backward && !task.segments.empty()) || task.kept_layers < 0 ||
        task.kept_layers > task.pack.last - task.pack.first + 1) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " has segments or kept layers that it cannot have"));
    }
  }
  if (!is_backward || above != 0) return Wrong("layer 0 has no backward");
  return absl::OkStatus();
}

absl::Status Checker::Steps() const {
  for (const Step& step : schedule_.steps) {
    if (step.gpu < 0 || step.gpu >= plan_.gpus || step.task < 0 ||
        step.task >= static_cast<int>(plan_.tasks.size()) || !(step.begin >= 0) ||
        !(step.end >= step.begin) || !(step.bytes >= 0)) {
      return Wrong(absl::StrCat(StepIndex::Name(step), " from ", step.begin, " to ", step.end,
                                " s is no step"));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Streams() const {
  std::map<std::pair<int, Stream>, std::vector<const Step*>> streams;
  for (const Step& step : schedule_.steps) streams[{step.gpu, step.stream}].push_back(&step);
  for (auto& [key, steps] : streams) {
    std::sort(steps.begin(), steps.end(), [](const Step* a, const Step* b) {
      return a->begin < b->begin || (a->begin == b->begin && a->end < b->end);
    });
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i]->begin < steps[i - 1]->end - kSlackSeconds) {
        return Wrong(absl::StrCat(StepIndex::Name(*steps[i]), " begins at ", steps[i]->begin,
                                  " s, while the stream is busy until ", steps[i - 1]->end,
                                  " with ", StepIndex::Name(*steps[i - 1])));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Chain(int lane, int t, Kind kind, Pack layers, int first, int end,
                            double& time) const {
  const bool is_down = kind == Kind::kBackward;
  int next = is_down ? layers.last : layers.first;
  for (const Step* step : index_.Find(index_.GpuOf(lane, t), t, kind, layers, first, end)) {
    const int edge = is_down ? step->layers.last : step->layers.first;
    const int far = is_down ? step->layers.first : step->layers.last;
    if (step->first_sample != first || step->end_sample != end || edge != next ||
        far < layers.first || far > layers.last || step->begin < time - kSlackSeconds) {
      return Wrong(absl::StrCat(StepIndex::Name(*step), " at ", step->begin,
                                " s is out of order: layer ", next, " is next at ", time));
    }
    const int size = end - first;
    const double seconds = is_down ? costs_.BackwardSeconds(size, step->layers)
                                   : costs_.Seconds(Pass::kForward, size, step->layers);
    if (IsFar(step->end - step->begin, seconds)) {
      return Wrong(absl::StrCat(StepIndex::Name(*step), " takes ", step->end - step->begin,
                                " s, not ", seconds));
    }
    THIMBLE_RETURN_IF_ERROR(Weights(*step));
    time = step->end;
    next = is_down ? far - 1 : far + 1;
  }
  if (next == (is_down ? layers.first - 1 : layers.last + 1)) return absl::OkStatus();
  return Wrong(absl::StrCat("layer ", next, " has no ", NameOf(kind), " in task ", t,
                            " for samples ", first, " to ", end - 1));
}

// Weights are those of the task, or of the one before on the GPU, which has kept them.
absl::Status Checker::Weights(const Step& step) const {
  const std::vector<int>& tasks = index_.TasksOf(step.gpu);
  const auto here = std::find(tasks.begin(), tasks.end(), step.task);
  for (int layer = step.layers.first; layer <= step.layers.last; ++layer) {
    double there = -1;
    for (auto at = here;; --at) {
      if (layer < plan_.tasks[*at].pack.first || layer > plan_.tasks[*at].pack.last) break;
      const StepIndex::Steps found =
          index_.Find(step.gpu, *at, Kind::kWeightsIn, {layer, layer}, 0, plan_.share());
      if (!found.empty()) {
        there = found.front()->end;
        if (IsThimble() && index_.lanes() > 1) {
          const StepIndex::Steps gathers =
              index_.Find(step.gpu, *at, Kind::kGather, {layer, layer}, 0, plan_.share());
          if (gathers.empty()) return Late(step, "what the other GPUs fetched", -1);
          there = gathers.front()->end;
          for (int lane = 0; lane < index_.lanes(); ++lane) {
            for (const Step* part :
                 index_.Find(lane, *at, Kind::kWeightsIn, {layer, layer}, 0, plan_.share())) {
              if (part->end > gathers.front()->begin + kSlackSeconds) {
                return Late(*gathers.front(), "a part of the weights", part->end);
              }
            }
          }
        }
        break;
      }
      if (at == tasks.begin() || !IsThimble()) break;
    }
    if (there < 0 || there > step.begin + kSlackSeconds) {
      return Late(step, absl::StrCat("the weights of layer ", layer).c_str(), there);
    }
  }
  return absl::OkStatus();
}

// What task `t` takes from the task before: the input of its first layer, or the gradient of the
// output of its last one.
absl::Status Checker::Boundary(int lane, int t, int layer, const Step& user) const {
  const int gpu = index_.GpuOf(lane, t);
  const int from = index_.GpuOf(lane, t - 1);
  const int made = plan_.tasks[t - 1].is_backward() ? layer : layer - 1;
  const int first = user.first_sample;
  const int end = user.end_sample;
  StepIndex::Steps copies = index_.Find(gpu, t, Kind::kReceive, {layer, layer}, first, end);
  for (const Step* copy : index_.Find(gpu, t, Kind::kBoundaryIn, {layer, layer}, first, end)) {
    copies.push_back(copy);
  }
  if (copies.empty() && gpu == from) {
    const double there = index_.ComputedAt(lane, t - 1, made, first, end);
    if (there >= 0 && there <= user.begin + kSlackSeconds) return absl::OkStatus();
    return Late(user, "its input", there);
  }
  if (!Cover(copies, first, end)) return Late(user, "its input", -1);
  for (const Step* copy : copies) {
    if (copy->end > user.begin + kSlackSeconds) return Late(user, "its input", copy->end);
    double there = index_.ComputedAt(lane, t - 1, made, copy->first_sample, copy->end_sample);
    if (there >= 0 && copy->kind == Kind::kBoundaryIn) {
      const StepIndex::Steps outs = index_.Find(from, t - 1, Kind::kBoundaryOut, {layer, layer},
                                                copy->first_sample, copy->end_sample);
      if (!Cover(outs, copy->first_sample, copy->end_sample)) there = -1;
      for (const Step* out : outs) {
        const double ready =
            index_.ComputedAt(lane, t - 1, made, out->first_sample, out->end_sample);
        if (ready < 0 || ready > out->begin + kSlackSeconds) return Late(*out, "it", ready);
        if (there >= 0) there = std::max(there, out->end);
      }
    }
    if (there < 0 || there > copy->begin + kSlackSeconds) return Late(*copy, "it", there);
  }
  return absl::OkStatus();
}

absl::Status Checker::Stash(int lane, int t, int layer, const Step& user) const {
  const Kind kind = layer == 0 ? Kind::kDataIn : Kind::kStashIn;
  const StepIndex::Steps ins = index_.Find(index_.GpuOf(lane, t), t, kind, {layer, layer},
                                           user.first_sample, user.end_sample);
  if (!Cover(ins, user.first_sample, user.end_sample)) return Late(user, "its input", -1);
  for (const Step* in : ins) {
    if (in->end > user.begin + kSlackSeconds) return Late(user, "its input", in->end);
    if (layer == 0) continue;
    int source = fused_ - 1;
    while (plan_.tasks[source].pack.first > layer) --source;
    const StepIndex::Steps outs = index_.Find(index_.GpuOf(lane, source), source, Kind::kStashOut,
                                              {layer, layer}, in->first_sample, in->end_sample);
    if (!Cover(outs, in->first_sample, in->end_sample)) return Late(*in, "the stash", -1);
    for (const Step* out : outs) {
      if (out->end > in->begin + kSlackSeconds) return Late(*in, "the stash", out->end);
      if (layer == plan_.tasks[source].pack.first) {
        THIMBLE_RETURN_IF_ERROR(Boundary(lane, source, layer, *out));
        continue;
      }
      const double ready =
          index_.ComputedAt(lane, source, layer - 1, out->first_sample, out->end_sample);
      if (ready < 0 || ready > out->begin + kSlackSeconds) return Late(*out, "it", ready);
    }
  }
  return absl::OkStatus();
}

// Activations that were kept: made by a forward on the same GPU for just these samples.
absl::Status Checker::Kept(int lane, int t, Pack layers, const Step& user) const {
  const int gpu = index_.GpuOf(lane, t);
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    int source = 0;
    while (plan_.tasks[source].pack.last < layer) ++source;
    if (index_.GpuOf(lane, source) != gpu ||
        plan_.tasks[source].microbatches != plan_.tasks[t].microbatches) {
      return Late(user, absl::StrCat("the activations of layer ", layer).c_str(), -1);
    }
    const double made = index_.ComputedAt(lane, source, layer, user.first_sample, user.end_sample);
    double there = made;
    if (plan_.tasks[t].kept_on_host) {
      const StepIndex::Steps outs = index_.Find(gpu, source, Kind::kActivationsOut, {layer, layer},
                                                user.first_sample, user.end_sample);
      const StepIndex::Steps ins = index_.Find(gpu, t, Kind::kActivationsIn, {layer, layer},
                                               user.first_sample, user.end_sample);
      const bool in_order = outs.size() == 1 && ins.size() == 1 &&
                            outs[0]->begin >= made - kSlackSeconds &&
                            ins[0]->begin >= outs[0]->end - kSlackSeconds;
      there = in_order ? ins[0]->end : -1;
    }
    if (made < 0 || there < 0 || there > user.begin + kSlackSeconds) {
      return Late(user, absl::StrCat("the activations of layer ", layer).c_str(), there);
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Forward(int lane, int t, int first, int end) const {
  const Pack pack = plan_.tasks[t].pack;
  double time = 0;
  THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kForward, pack, first, end, time));
  const Step& user =
      *index_.Find(index_.GpuOf(lane, t), t, Kind::kForward, pack, first, end).front();
  return pack.first == 0 ? Stash(lane, t, 0, user) : Boundary(lane, t, pack.first, user);
}

absl::Status Checker::Backward(int lane, int t, int first, int end) const {
  const Task& task = plan_.tasks[t];
  const int gpu = index_.GpuOf(lane, t);
  double time = 0;
  for (const auto& [segment, kept] : StepIndex::SegmentsWithKept(task, IsLater(t))) {
    const Pack again = {segment.first, segment.last - kept};
    if (again.first <= again.last) {
      THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kRecompute, again, first, end, time));
      const Step& user = *index_.Find(gpu, t, Kind::kRecompute, again, first, end).front();
      THIMBLE_RETURN_IF_ERROR(IsLater(t) || again.first == 0
                                  ? Stash(lane, t, again.first, user)
                                  : Boundary(lane, t, again.first, user));
    }
    THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kBackward, segment, first, end, time));
    const Step& user = *index_.Find(gpu, t, Kind::kBackward, segment, first, end).front();
    if (IsLater(t) && segment.last == task.pack.last) {
      THIMBLE_RETURN_IF_ERROR(Boundary(lane, t, task.pack.last + 1, user));
    }
    if (kept > 0) {
      THIMBLE_RETURN_IF_ERROR(Kept(lane, t, {again.last + 1, segment.last}, user));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Tasks() const {
  for (int lane = 0; lane < index_.lanes(); ++lane) {
    for (int t = 0; t < static_cast<int>(plan_.tasks.size()); ++t) {
      const std::vector<int> bounds = SampleBounds(plan_.tasks[t].microbatches);
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        THIMBLE_RETURN_IF_ERROR(plan_.tasks[t].is_backward()
                                    ? Backward(lane, t, bounds[i], bounds[i + 1])
                                    : Forward(lane, t, bounds[i], bounds[i + 1]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Gradients() const {
  const double part = IsThimble() ? 1.0 / index_.lanes() : 1;
  for (int lane = 0; lane < index_.lanes(); ++lane) {
    for (int t = fused_; t < static_cast<int>(plan_.tasks.size()); ++t) {
      const int gpu = index_.GpuOf(lane, t);
      const Pack pack = plan_.tasks[t].pack;
      for (int layer = pack.first; layer <= pack.last; ++layer) {
        const Pack one = {layer, layer};
        const StepIndex::Steps outs =
            index_.Find(gpu, t, Kind::kGradientOut, one, 0, plan_.share());
        const StepIndex::Steps updates = index_.Find(gpu, t, Kind::kUpdate, one, 0, plan_.share());
        if (outs.size() != 1 || updates.size() != 1) {
          return Wrong(absl::StrCat("the gradient of layer ", layer, " leaves GPU ", gpu, " ",
                                    outs.size(), " times and is applied ", updates.size(),
                                    " times"));
        }
        double ready = index_.ComputedAt(lane, t, layer, 0, plan_.share());
        const StepIndex::Steps sums = index_.Find(gpu, t, Kind::kReduce, one, 0, plan_.share());
        if (index_.lanes() > 1) {
          if (sums.size() != 1) {
            return Wrong(absl::StrCat("the gradient of layer ", layer, " is summed ", sums.size(),
                                      " times on GPU ", gpu));
          }
          for (int other = 0; other < index_.lanes(); ++other) {
            const double computed = index_.ComputedAt(other, t, layer, 0, plan_.share());
            if (computed > sums[0]->begin + kSlackSeconds) {
              return Late(*sums[0], "a gradient", computed);
            }
          }
          ready = sums[0]->end;
        }
        if (ready < 0 || ready > outs[0]->begin + kSlackSeconds) {
          return Late(*outs[0], "it", ready);
        }
        if (updates[0]->begin < outs[0]->end - kSlackSeconds) {
          return Late(*updates[0], "the gradient", outs[0]->end);
        }
        if (IsFar(outs[0]->bytes, costs_.WeightBytes(outs[0]->layers) * part)) {
          return Wrong(absl::StrCat(StepIndex::Name(*outs[0]), " has ", outs[0]->bytes, " bytes"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// Rates are not part of a schedule. But a link must be able to carry what begins and ends within
// any span of time, and no transfer is faster than it would be alone.
absl::Status Checker::Links() const {
  const Network network(server_);
  std::vector<std::vector<const Step*>> links(network.link_count());
  for (const Step& step : schedule_.steps) {
    int from = kHost;
    int to = kHost;
    if (step.stream == Stream::kIn) {
      to = step.gpu;
    } else if (step.stream == Stream::kOut) {
      from = step.gpu;
    } else if (step.kind == Kind::kReceive) {
      to = step.gpu;
      from = plan_.tasks[step.task - 1].gpu;
    } else {
      continue;
    }
    const double alone = network.Alone(from, to);
    if ((step.end - step.begin) * alone < step.bytes * (1 - 1e-6) - 1) {
      return Wrong(absl::StrCat(StepIndex::Name(step), " moves ", step.bytes, " bytes in ",
                                step.end - step.begin, " s"));
    }
    for (const int link : network.RouteOf(from, to).links) links[link].push_back(&step);
  }
  for (int link = 0; link < network.link_count(); ++link) {
    std::vector<const Step*>& steps = links[link];
    std::sort(steps.begin(), steps.end(),
              [](const Step* a, const Step* b) { return a->end < b->end; });
    for (const Step* from : steps) {
      double bytes = 0;
      for (const Step* step : steps) {
        if (step->begin < from->begin) continue;
        bytes += step->bytes;
        const double room = network.capacity(link) * (step->end - from->begin);
        if (bytes > room * (1 + 1e-6) + 1024) {
          return Wrong(absl::StrCat("a link carries ", bytes, " bytes from ", from->begin, " to ",
                                    step->end, " s, more than ", room));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Sums() const {
  Schedule again;
  again.plan = plan_;
  again.steps = schedule_.steps;
  AddUp(again);
  const double pairs[][2] = {{again.seconds, schedule_.seconds},
                             {again.in_bytes, schedule_.in_bytes},
                             {again.out_bytes, schedule_.out_bytes},
                             {again.peer_bytes, schedule_.peer_bytes},
                             {again.compute_fraction, schedule_.compute_fraction}};
  for (const auto& [is, claimed] : pairs) {
    if (IsFar(is, claimed)) {
      return Wrong(absl::StrCat("the schedule claims ", claimed, " where its steps come to ", is));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSchedule(const Costs& costs, const Server& server, const Schedule& schedule) {
  THIMBLE_RETURN_IF_ERROR(Checker::WholePlan(costs, server, schedule.plan));
  const Checker checker(costs, server, schedule);
  THIMBLE_RETURN_IF_ERROR(checker.Steps());
  THIMBLE_RETURN_IF_ERROR(checker.Streams());
  THIMBLE_RETURN_IF_ERROR(checker.Tasks());
  THIMBLE_RETURN_IF_ERROR(checker.Gradients());
  THIMBLE_RETURN_IF_ERROR(checker.Sums());
  if (schedule.plan.rules == Rules::kThimble) {
    THIMBLE_RETURN_IF_ERROR(checker.Links());
    return CheckMemory(costs, StepIndex(schedule), server.memory_bytes);
  }
  for (const Task& task : schedule.plan.tasks) {
    const double bytes = costs.PeakBytes(task.pass, task.microbatches[0], task.pack);
    if (bytes > server.memory_bytes) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " needs ", bytes, " bytes of ", server.memory_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
