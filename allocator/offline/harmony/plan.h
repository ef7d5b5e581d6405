// How one training iteration is divided and placed.
//
//   forward   packs of layers, ascending: 0 .. s-1
//   backward  packs of layers, descending: [s, last layer] is the fused pack, which runs forward
//   and
//             backward at once; the others run their forward again before their backward
//
// A task is one pack on one GPU; it runs all its microbatches before the next task of that GPU.
// Tasks are numbered in order: the forward packs, then the backward packs. A GPU runs its tasks in
// the order of their numbers. An update of a backward pack's weights follows it on the host.
//
// pp: every task has one GPU, and all samples. dp: every GPU runs every task on its share of them.
#pragma once

#include <string>
#include <vector>

#include "allocator/offline/harmony/costs.h"

namespace thimble::harmony {

enum class Mode { kDataParallel, kPipeline };
enum class Rules { kThimble, kHarmony };

inline constexpr int kEveryGpu = -1;

// What happens to a segment's activations between its forward and its backward. kNothing: they are
// computed again.
enum class Keep { kNothing, kOnGpu, kOnHost };

struct Segment {
  Pack layers;
  Keep keep = Keep::kNothing;
};

struct Task {
  Pack pack;
  Pass pass = Pass::kForward;
  int gpu = kEveryGpu;
  std::vector<int> microbatches;  // sizes; in dp, of one GPU
  // The first layers of its segments, ascending; empty: the pack is one segment. Only one segment's
  // activations exist at a time: for every microbatch, a backward task runs each segment forward
  // again and backward before the segment below it. The fused pack is always one segment.
  std::vector<int> segments;
  // By segment, for a backward pack that is not fused; empty: nothing is kept. A segment whose
  // activations are kept from its forward, on this GPU or on the host, is not run forward again;
  // its forward runs on the same GPU with the same microbatches.
  std::vector<Keep> keep;
  // For a backward pack: its weights and optimizer state stay on its GPU between iterations and are
  // updated there. Its forward runs there too. In dp every GPU has the weights and its part of the
  // state.
  bool is_resident = false;

  bool is_backward() const { return pass == Pass::kBackward; }
};

struct Plan {
  Mode mode = Mode::kPipeline;
  Rules rules = Rules::kThimble;
  bool prefetch = true;  // rules harmony; rules thimble always prefetch
  int gpus = 1;
  int batch = 1;  // all samples of an iteration
  // What a task hands to the next one waits on the host, not on the GPU: slower, but needs the
  // least memory.
  bool boundaries_on_host = false;
  std::vector<Task> tasks;

  int forward_count() const;
  int fused() const { return forward_count(); }  // index of the fused task
  // The samples that one task computes: a GPU's share in dp, all in pp.
  int share() const { return mode == Mode::kPipeline ? batch : batch / gpus; }
};

// Whether the weights of a layer are always on this GPU.
bool IsResident(const Plan& plan, int gpu, int layer);
// The bytes that takes.
double ResidentBytes(const Costs& costs, const Plan& plan, int gpu);

// Divides `batch` into `count` microbatches that differ by at most one sample, larger ones first.
std::vector<int> EvenSplit(int batch, int count);
// The segments of a task, last first: the order in which a backward runs them.
std::vector<Segment> SegmentsDown(const Task& task);
// The first sample of every microbatch, then the end.
std::vector<int> SampleBounds(const std::vector<int>& microbatches);

const char* NameOf(Mode mode);
const char* NameOf(Rules rules);

}  // namespace thimble::harmony
