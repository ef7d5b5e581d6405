#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/offline/harmony/network.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

// A schedule has no rates. But a link must be able to carry what begins and ends within any
// interval, and no transfer is faster than it would be alone.
absl::Status ScheduleChecker::Links() const {
  const Network network(server_);
  std::vector<std::vector<const Action*>> links(network.link_count());
  for (const Action& action : schedule_.actions) {
    int from = kHost;
    int to = kHost;
    if (action.stream == Stream::kIn) {
      to = action.gpu;
    } else if (action.stream == Stream::kOut) {
      from = action.gpu;
    } else if (action.kind == Kind::kReceive) {
      to = action.gpu;
      from = plan_.tasks[action.task - 1].gpu;
    } else {
      continue;
    }
    const double alone = network.Alone(from, to);
    if ((action.end - action.begin) * alone < action.bytes * (1 - 1e-6) - 1) {
      return Wrong(absl::StrCat(ActionIndex::Name(action), " moves ", action.bytes, " bytes in ",
                                action.end - action.begin, " s"));
    }
    for (const int link : network.RouteOf(from, to).links) links[link].push_back(&action);
  }
  for (int link = 0; link < network.link_count(); ++link) {
    std::vector<const Action*>& actions = links[link];
    std::sort(actions.begin(), actions.end(),
              [](const Action* a, const Action* b) { return a->end < b->end; });
    for (const Action* from : actions) {
      double bytes = 0;
      for (const Action* action : actions) {
        if (action->begin < from->begin) continue;
        bytes += action->bytes;
        const double room = network.capacity(link) * (action->end - from->begin);
        if (bytes > room * (1 + 1e-6) + 1024) {
          return Wrong(absl::StrCat("a link carries ", bytes, " bytes from ", from->begin, " to ",
                                    action->end, " s, more than ", room));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
