// ParseProfile: any text is either refused with its place, or it is a sound profile, whose packs
// have costs that add up.
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/profile.h"
#include "tests/fuzz/input.h"

namespace {

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

bool AreAmounts(const std::vector<double>& values, int count) {
  for (const double value : values) {
    if (!IsAmount(value)) return false;
  }
  return static_cast<int>(values.size()) == count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thimble::harmony;
  const auto profile = ParseProfile(thimble::Input(data, size).Rest(), "fuzz.csv");
  if (!profile.ok()) {
    FUZZ_EXPECT(profile.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StartsWith(profile.status().message(), "fuzz.csv:"));
    return 0;
  }
  const int layers = profile->layer_count();
  FUZZ_EXPECT(layers >= 1 && layers <= kMaxLayers);
  for (const Layer& layer : profile->layers) {
    FUZZ_EXPECT(IsAmount(layer.weight_bytes) && IsAmount(layer.update_seconds));
    FUZZ_EXPECT(IsAmount(layer.input_bytes));
  }
  int before = 0;
  for (const Sample& sample : profile->samples) {
    FUZZ_EXPECT(sample.size > before && sample.size <= kMaxBatch);
    before = sample.size;
    FUZZ_EXPECT(AreAmounts(sample.forward_seconds, layers));
    FUZZ_EXPECT(AreAmounts(sample.backward_seconds, layers));
    FUZZ_EXPECT(AreAmounts(sample.forward_bytes, layers));
    FUZZ_EXPECT(AreAmounts(sample.backward_bytes, layers));
  }
  const Costs costs(*profile, /*largest=*/64);
  FUZZ_EXPECT(costs.largest() >= 1 && costs.layer_count() == layers);
  const Pack all = {0, layers - 1};
  for (int one = 1; one <= costs.largest(); ++one) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      FUZZ_EXPECT(IsAmount(costs.Seconds(pass, one, all)));
      FUZZ_EXPECT(IsAmount(costs.WorkBytes(pass, one, all)));
    }
  }
  return 0;
}
