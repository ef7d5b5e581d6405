// When everything of one iteration happens: what planning delivers, what the validator checks, what
// pictures show. Seconds from the beginning of the iteration.
#pragma once

#include <string>
#include <vector>

#include "allocator/offline/harmony/plan.h"

namespace thimble::harmony {

// What a GPU, or the host for it, does one after the other.
enum class Stream { kCompute, kIn, kOut, kPeerIn, kPeerOut, kHost };
inline constexpr int kStreams = 6;

enum class Kind {
  kWeightsIn,      // of a task's layers, from the host
  kDataIn,         // samples of the data set, or their stash, for layer 0
  kStashIn,        // the input of a backward pack, which the forward left on the host
  kBoundaryIn,     // what another task left on the host: activations or gradients
  kReceive,        // the same from another GPU
  kActivationsIn,  // of layers that are not run again
  kForward,        // layers run forward
  kRecompute,      // the same again, in a backward task; in the fused one for the first time
  kBackward,
  kActivationsOut,
  kStashOut,
  kBoundaryOut,
  kSend,
  kGather,  // weights of which every GPU has fetched a part: dp
  kReduce,  // gradients summed over all GPUs: dp
  kGradientOut,
  kUpdate,   // on the host
  kMessage,  // stash or boundary from one process to another: rules harmony
  kDelete    // rules harmony: memory of a task is given back
};

struct Step {
  Kind kind = Kind::kForward;
  Stream stream = Stream::kCompute;
  int gpu = 0;
  int task = 0;
  Pack layers;  // a boundary is named by the layer whose input it is, or whose gradient
  int first_sample = 0;
  int end_sample = 0;
  double bytes = 0;  // that a link carries
  double begin = 0;
  double end = 0;
};

struct Schedule {
  Plan plan;
  std::vector<Step> steps;         // in no particular order
  double seconds = 0;              // the end of the last step
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
// Does it leave something on the host that was not there before?
bool WaitsOnHost(const Step& step);

// Fills in the sums from plan and steps; peaks are the business of whoever made the schedule.
void AddUp(Schedule& schedule);

}  // namespace thimble::harmony
