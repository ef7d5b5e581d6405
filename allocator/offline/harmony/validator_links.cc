#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/offline/harmony/network.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

// Rates are not part of a schedule. But a link must be able to carry what begins and ends within
// any span of time, and no transfer is faster than it would be alone.
absl::Status ScheduleChecker::Links() const {
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

}  // namespace thimble::harmony
