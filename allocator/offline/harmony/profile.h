// What a model costs, layer by layer: the input of every plan.
//
//   ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,fwd_mem_bytes,bwd_mem_bytes,x_elems
//   1,0,127131648,0.00065,0.00484,0.0985,142641152,262189056,1536
//
// One line per microbatch size and layer. Backward includes the forward that is run again for it;
// memory is the peak while the layer runs alone, its weights and input included; x_elems are the
// elements (4 bytes) of its input, for the whole microbatch. Weights, update and input per sample
// are the same for every size. Sizes that were not measured are interpolated.
//
// An optional tenth column, buffer_bytes, is for data of a layer that is not trained (the mask of
// GPT-2's attention, the averages of batch normalization): it moves with the weights. A size that
// was measured forward only has bwd_gpu_s and bwd_mem_bytes empty.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble::harmony {

inline constexpr int kMaxLayers = 1 << 14;
inline constexpr int kMaxBatch = 1 << 14;

// What does not depend on the microbatch size.
struct Layer {
  double weight_bytes = 0;
  double update_seconds = 0;  // on the host
  double input_bytes = 0;     // per sample
  double buffer_bytes = 0;
};

// What depends on the microbatch size, by layer.
struct Sample {
  int size = 0;
  std::vector<double> forward_seconds;
  std::vector<double> forward_bytes;
  // Includes the forward that is run again. Empty: measured forward only.
  std::vector<double> backward_seconds;
  std::vector<double> backward_bytes;
};

struct Profile {
  std::vector<Layer> layers;
  std::vector<Sample> samples;  // by size, ascending

  int layer_count() const { return static_cast<int>(layers.size()); }
};

// Refuses the first wrong line with its place (`name`:line), the value and a remedy.
absl::StatusOr<Profile> ParseProfile(absl::string_view text, absl::string_view name);
absl::StatusOr<Profile> ReadProfileFile(const std::string& path);

}  // namespace thimble::harmony
