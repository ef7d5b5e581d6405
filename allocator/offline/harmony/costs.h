// Times and bytes of packs: sums over the layers of a profile, for every microbatch size.
//
// A pack is a run of layers [first, last]. Its memory follows the published rule: the sum of what
// its layers need alone, with each input between two layers counted once, because it is the output
// of the layer before.
#pragma once

#include <algorithm>
#include <vector>

#include "allocator/offline/harmony/profile.h"

namespace thimble::harmony {

struct Pack {
  int first = 0;
  int last = 0;  // included
};

inline bool operator==(const Pack& a, const Pack& b) {
  return a.first == b.first && a.last == b.last;
}
inline bool operator!=(const Pack& a, const Pack& b) { return !(a == b); }
inline bool Overlap(const Pack& a, const Pack& b) { return a.first <= b.last && b.first <= a.last; }

// Optimizer state in copies of the weights, as Adam has it. A profile does not say.
inline constexpr double kStateCopies = 2;

enum class Pass { kForward, kBackward };  // kBackward includes running the forward again

class Costs {
 public:
  // For microbatches of up to `largest`. `profile` must outlive it.
  Costs(const Profile& profile, int largest);

  const Profile& profile() const { return profile_; }
  int layer_count() const { return profile_.layer_count(); }
  // The largest microbatch in the profile, and the smallest that was measured.
  int largest(Pass pass) const { return static_cast<int>(TablesOf(pass).size()) - 1; }
  int largest() const { return std::min(largest(Pass::kForward), largest(Pass::kBackward)); }
  int smallest(Pass pass) const { return smallest_[pass == Pass::kForward ? 0 : 1]; }

  double Seconds(Pass pass, int size, Pack pack) const {
    const Table& table = TableOf(pass, size);
    return table.seconds[pack.last + 1] - table.seconds[pack.first];
  }
  // The same for one layer, without the rounding errors of sums.
  double LayerSeconds(Pass pass, int size, int layer) const {
    return TableOf(pass, size).layer_seconds[layer];
  }
  // The backward alone, without running the forward again.
  double BackwardSeconds(int size, Pack pack) const {
    return Seconds(Pass::kBackward, size, pack) - Seconds(Pass::kForward, size, pack);
  }
  // The published peak of a pack: weights (twice in a backward), activations, its own input.
  double PeakBytes(Pass pass, int size, Pack pack) const {
    const Table& table = TableOf(pass, size);
    return table.bytes[pack.last + 1] - table.bytes[pack.first] -
           size * (inputs_[pack.last + 1] - inputs_[pack.first + 1]);
  }
  // The part of this that is neither weights, nor gradients, nor the pack's input.
  double WorkBytes(Pass pass, int size, Pack pack) const;
  // What the backward of layers needs of their forward.
  double KeptBytes(int size, Pack layers) const {
    return WorkBytes(Pass::kBackward, size, layers) + InputBytes(size, layers.first);
  }
  // Includes buffers, which move with the weights.
  double WeightBytes(Pack pack) const { return weights_[pack.last + 1] - weights_[pack.first]; }
  // On the host where the profile was made.
  double UpdateSeconds(Pack pack) const { return updates_[pack.last + 1] - updates_[pack.first]; }
  // The input of a layer; zero after the last one.
  double InputBytes(int size, int layer) const {
    return layer < layer_count() ? size * profile_.layers[layer].input_bytes : 0;
  }

 private:
  struct Table {
    std::vector<double> layer_seconds;
    std::vector<double> seconds;  // prefix sums over layers
    std::vector<double> bytes;
  };

  const std::vector<Table>& TablesOf(Pass pass) const {
    return tables_[pass == Pass::kForward ? 0 : 1];
  }
  const Table& TableOf(Pass pass, int size) const { return TablesOf(pass)[size]; }
  void AddTables(Pass pass, int largest);

  const Profile& profile_;
  std::vector<Table> tables_[2];  // by size; nothing for 0
  int smallest_[2] = {1, 1};
  std::vector<double> weights_;
  std::vector<double> updates_;
  std::vector<double> inputs_;  // per sample
};

// Weights of the whole model.
inline double ModelBytes(const Costs& costs) {
  return costs.WeightBytes({0, costs.layer_count() - 1});
}

// What the host holds under any plan: weights, gradients and optimizer state.
inline double HostBytes(const Costs& costs) { return (2 + kStateCopies) * ModelBytes(costs); }

}  // namespace thimble::harmony
