#include "allocator/offline/schedule/copy_engine.h"

#include <algorithm>

namespace thimble::schedule {

std::optional<CopyEngine::Span> CopyEngine::FirstConflict(Ns begin, Ns length) const {
  if (busy_.empty()) return std::nullopt;
  Ns base = begin / period_ * period_;
  auto span = std::upper_bound(busy_.begin(), busy_.end(), begin - base,
                               [](Ns time, const Span& busy) { return time < busy.end; });
  if (span == busy_.end()) {
    span = busy_.begin();
    base += period_;
  }
  if (base + span->begin >= begin + length) return std::nullopt;
  return Span{base + span->begin, base + span->end};
}

std::optional<CopyEngine::Span> CopyEngine::LastConflict(Ns begin, Ns length) const {
  if (busy_.empty()) return std::nullopt;
  Ns base = (begin + length) / period_ * period_;
  auto span = std::lower_bound(busy_.begin(), busy_.end(), begin + length - base,
                               [](const Span& busy, Ns time) { return busy.begin < time; });
  if (span == busy_.begin()) {
    span = busy_.end();
    base -= period_;
  }
  --span;
  if (base + span->end <= begin) return std::nullopt;
  return Span{base + span->begin, base + span->end};
}

std::optional<Ns> CopyEngine::Earliest(Ns from, Ns length, Ns until) const {
  if (length > period_) return std::nullopt;  // it would overlap itself
  Ns begin = from;
  while (begin + length <= until) {
    const std::optional<Span> conflict = FirstConflict(begin, length);
    if (!conflict) return begin;
    begin = conflict->end;
  }
  return std::nullopt;
}

std::optional<Ns> CopyEngine::Latest(Ns from, Ns length, Ns until) const {
  if (length > period_) return std::nullopt;
  Ns begin = until - length;
  while (begin >= from) {
    const std::optional<Span> conflict = LastConflict(begin, length);
    if (!conflict) return begin;
    begin = conflict->begin - length;
  }
  return std::nullopt;
}

void CopyEngine::Insert(Span span) {
  const auto after = std::upper_bound(busy_.begin(), busy_.end(), span.begin,
                                      [](Ns time, const Span& busy) { return time < busy.begin; });
  busy_.insert(after, span);
}

void CopyEngine::Reserve(Ns begin, Ns length) {
  const Ns start = begin % period_;
  const Ns end = start + length;
  Insert({start, std::min(end, period_)});
  if (end > period_) Insert({0, end - period_});
}

}  // namespace thimble::schedule
