// Events on streams that are queues. An event begins when the events it waits for and the one
// before it on its stream have ended, so times are longest paths.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/offline/harmony/schedule.h"

namespace thimble::harmony {

class EventGraph {
 public:
  using Key = std::array<int, 4>;  // any name, used once

  // Queues an action on its stream of its GPU. Waits may name events that are added later.
  int Add(const Key& key, const Action& action, double seconds);
  void After(int event, const Key& key) { waits_.push_back({event, key}); }
  // The two begin together: each waits for everything the other waits for. Call it for both.
  void Meet(int event, const Key& key) { meetings_.push_back({event, key}); }

  // The actions with their times; none if the waits are circular.
  std::vector<Action> Run();

 private:
  struct Event {
    Action action;
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
