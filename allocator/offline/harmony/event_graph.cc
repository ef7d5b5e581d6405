#include "allocator/offline/harmony/event_graph.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace thimble::harmony {

int EventGraph::Add(const Key& key, const Action& action, double seconds) {
  const int index = static_cast<int>(events_.size());
  Event event;
  event.action = action;
  event.seconds = seconds;
  const int stream = action.gpu * kStreams + static_cast<int>(action.stream);
  const auto [last, is_first] = last_.try_emplace(stream, index);
  if (!is_first) event.previous = last->second;
  last->second = index;
  events_.push_back(event);
  names_[key] = index;
  return index;
}

void EventGraph::Resolve() {
  for (const Wait& wait : waits_) {
    const auto found = names_.find(wait.key);
    THIMBLE_CHECK(found != names_.end(), "an event waits for one that exists");
    events_[wait.event].waits.push_back(found->second);
  }
  // Collects the waits before changing any: events that meet refer to each other.
  std::vector<std::vector<int>> added(meetings_.size());
  for (std::size_t i = 0; i < meetings_.size(); ++i) {
    const auto found = names_.find(meetings_[i].key);
    THIMBLE_CHECK(found != names_.end(), "an event meets one that exists");
    const Event& other = events_[found->second];
    added[i] = other.waits;
    if (other.previous >= 0) added[i].push_back(other.previous);
  }
  for (std::size_t i = 0; i < meetings_.size(); ++i) {
    std::vector<int>& waits = events_[meetings_[i].event].waits;
    waits.insert(waits.end(), added[i].begin(), added[i].end());
  }
}

std::vector<Action> EventGraph::Run() {
  Resolve();
  std::vector<int> open(events_.size(), 0);
  std::vector<std::vector<int>> followers(events_.size());
  for (std::size_t i = 0; i < events_.size(); ++i) {
    Event& event = events_[i];
    if (event.previous >= 0) event.waits.push_back(event.previous);
    for (const int wait : event.waits) followers[wait].push_back(static_cast<int>(i));
    open[i] = static_cast<int>(event.waits.size());
  }
  std::vector<int> ready;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    if (open[i] == 0) ready.push_back(static_cast<int>(i));
  }
  std::vector<Action> actions;
  while (!ready.empty()) {
    Event& event = events_[ready.back()];
    const int index = ready.back();
    ready.pop_back();
    for (const int wait : event.waits) {
      event.action.begin = std::max(event.action.begin, events_[wait].action.end);
    }
    event.action.end = event.action.begin + event.seconds;
    actions.push_back(event.action);
    for (const int follower : followers[index]) {
      if (--open[follower] == 0) ready.push_back(follower);
    }
  }
  if (actions.size() < events_.size()) actions.clear();
  return actions;
}

}  // namespace thimble::harmony
