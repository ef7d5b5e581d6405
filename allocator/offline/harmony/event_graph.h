// Events on streams that are queues: each begins when those it waits for are over and the one
// before it on its stream is, too. So times are longest paths.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/offline/harmony/schedule.h"

namespace thimble::harmony {

class EventGraph {
 public:
  using Key = std::array<int, 4>;  // any name; used once

  // Queues a step on its stream of its GPU. Waits may name events that are added later.
  int Add(const Key& key, const Step& step, double seconds);
  void After(int event, const Key& key) { waits_.push_back({event, key}); }
  // The two begin together: each waits for all that the other waits for. Both ends say so.
  void Meet(int event, const Key& key) { meetings_.push_back({event, key}); }

  // The steps with their times; none if waits are circular, so that nothing would ever begin.
  std::vector<Step> Run();

 private:
  struct Event {
    Step step;
    double seconds = 0;
    int previous = -1;  // on its stream
    std::vector<int> waits;
  };
  struct Wait {
    int event = 0;
    Key key = {};
  };

  void Resolve();

  std::vector<Event> events_;
  absl::flat_hash_map<Key, int> names_;
  absl::flat_hash_map<int, int> last_;  // by GPU and stream
  std::vector<Wait> waits_;
  std::vector<Wait> meetings_;
};

}  // namespace thimble::harmony
