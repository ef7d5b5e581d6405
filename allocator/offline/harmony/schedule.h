// When everything in one iteration happens: what planning returns, the validator checks and charts
// show. Times are seconds from the beginning of the iteration.
#pragma once

#include <string>
#include <vector>

#include "allocator/offline/harmony/plan.h"

namespace thimble::harmony {

// A GPU, or the host for it, does one action at a time on each stream.
enum class Stream { kCompute, kIn, kOut, kPeerIn, kPeerOut, kHost };
inline constexpr int kStreams = 6;

enum class Kind {
  kWeightsIn,      // of a task's layers, from the host
  kDataIn,         // samples of the data set, or their stash, for layer 0
  kStashIn,        // the input of a backward pack, which the forward left on the host
  kBoundaryIn,     // what another task left on the host: activations or gradients
  kReceive,        // the same from another GPU
  kActivationsIn,  // of layers that are not run forward again
  kForward,        // layers run forward
  kRecompute,      // the same again in a backward task; in the fused task, the first time
  kBackward,
  kActivationsOut,
  kStashOut,
  kBoundaryOut,
  kSend,
  kGather,  // dp: weights of which every GPU has fetched a part
  kReduce,  // dp: gradients summed over all GPUs
  kGradientOut,
  kUpdate,   // on the host
  kMessage,  // rules harmony: stash or boundary from one process to another
  kDelete    // rules harmony: a task's memory is freed
};

// What one stream does from `begin` to `end`.
struct Action {
  Kind kind = Kind::kForward;
  Stream stream = Stream::kCompute;
  int gpu = 0;
  int task = 0;
  Pack layers;  // a boundary is named by the layer whose input, or whose input's gradient, it is
  int first_sample = 0;
  int end_sample = 0;
  double bytes = 0;  // carried by links
  double begin = 0;
  double end = 0;
};

struct Schedule {
  Plan plan;
  std::vector<Action> actions;     // in no particular order
  double seconds = 0;              // the end of the last action
  double in_bytes = 0;             // host to GPUs
  double out_bytes = 0;            // GPUs to host
  double peer_bytes = 0;           // between GPUs
  double compute_fraction = 0;     // of all GPUs' time
  std::vector<double> peak_bytes;  // by GPU

  double swap_bytes() const { return in_bytes + out_bytes; }
};

const char* NameOf(Kind kind);
const char* NameOf(Stream stream);
bool IsCompute(Kind kind);
// Whether it leaves something new on the host.
bool WaitsOnHost(const Action& action);

// Fills in the sums from plan and actions, except the peaks: the maker of the schedule knows them.
void AddUp(Schedule& schedule);

}  // namespace thimble::harmony
