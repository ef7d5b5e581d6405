#include "absl/strings/str_cat.h"
#include "allocator/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status ScheduleChecker::Gradients() const {
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

}  // namespace thimble::harmony
