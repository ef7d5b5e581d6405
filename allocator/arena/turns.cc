#include "allocator/arena/turns.h"

#include <algorithm>

namespace thimble {
namespace {

template <typename Entries>
auto FindThread(Entries& entries, Turns::Thread thread) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.thread == thread; });
}

}  // namespace

void Turns::Ask(Thread thread, Clock::time_point now) {
  Time begin = last_end_;
  if (const auto away = FindThread(away_, thread); away != away_.end()) {
    const bool is_back = now - away->since <= kComesBack;
    begin = is_back ? away->end : std::max(begin, away->end);
    away_.erase(away);
  }
  const auto after = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& other) { return begin < other.begin; });
  waiting_.insert(after, {thread, begin});
}

void Turns::GiveUp(Thread thread) { waiting_.erase(FindThread(waiting_, thread)); }

Turns::Clock::time_point Turns::MayBeginAt(Thread thread) const {
  if (depth_ > 0 || waiting_.front().thread != thread) return Clock::time_point::max();
  Clock::time_point at = Clock::time_point::min();
  for (const Away& away : away_) {
    if (away.end < waiting_.front().begin) at = std::max(at, away.since + kComesBack);
  }
  return at;
}

void Turns::Begin(Thread thread, Clock::time_point now) {
  const auto waiting = FindThread(waiting_, thread);
  thread_ = thread;
  depth_ = 1;
  begin_ = waiting->begin;
  since_ = now;
  waiting_.erase(waiting);
}

void Turns::Exclude(Thread thread, Clock::duration waited) {
  if (IsTurnOf(thread)) since_ += waited;
}

bool Turns::End(Thread thread, Clock::time_point now) {
  if (!IsTurnOf(thread) || --depth_ > 0) return false;
  last_end_ = begin_ + std::min<Time>(now - since_, kLongest);
  while (!away_.empty() && now - away_.front().since > kLongest) away_.erase(away_.begin());
  away_.push_back({thread, last_end_, now});
  return true;
}

}  // namespace thimble
