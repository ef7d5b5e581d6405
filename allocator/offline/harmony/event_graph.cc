#include "allocator/offline/harmony/event_graph.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace thimble::harmony {

int EventGraph::Add(const Key& key, const Step& step, double seconds) {
  const int index = static_cast<int>(events_.size());
  Event event;
  event.step = step;
  event.seconds = seconds;
  const int stream = step.gpu * kStreams + static_cast<int>(step.stream);
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
  // From the waits as they are before any meeting: the two sides refer to each other.
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

std::vector<Step> EventGraph::Run() {
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
  std::vector<Step> steps;
  while (!ready.empty()) {
    Event& event = events_[ready.back()];
    const int index = ready.back();
    ready.pop_back();
    for (const int wait : event.waits) {
      event.step.begin = std::max(event.step.begin, events_[wait].step.end);
    }
    event.step.end = event.step.begin + event.seconds;
    steps.push_back(event.step);
    for (const int follower : followers[index]) {
      if (--open[follower] == 0) ready.push_back(follower);
    }
  }
  if (steps.size() < events_.size()) steps.clear();
  return steps;
}

}  // namespace thimble::harmony
