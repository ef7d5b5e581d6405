// The largest value of a quantity: since the beginning, and since each of any number of marks.
//
// Raise() is on the way of every request, so it knows one number only: the peak of the window since
// a mark was set last. When that happens, the window's peak goes into all that are open.
//
// Invariant: the peak of an open mark is the largest value that was raised since it was set, and
// the value of that moment; so is overall() since ResetOverall().
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "allocator/base/bytes.h"

namespace thimble {

using PeakMark = std::uint64_t;

class Peaks {
 public:
  void Raise(Bytes now) { window_ = std::max(window_, now); }

  Bytes overall() const { return std::max(overall_, window_); }
  // Only for overall(): marks keep theirs.
  void ResetOverall(Bytes now) {
    CloseWindow(now);
    overall_ = now;
  }

  // `mark` is not set; `now` is the value of this moment, as everywhere here.
  void Set(PeakMark mark, Bytes now) {
    CloseWindow(now);
    marks_[mark] = now;
  }
  // Nothing if it is not set.
  std::optional<Bytes> Of(PeakMark mark) const {
    const auto found = marks_.find(mark);
    if (found == marks_.end()) return std::nullopt;
    return std::max(found->second, window_);
  }
  void Remove(PeakMark mark) { marks_.erase(mark); }

 private:
  void CloseWindow(Bytes now) {
    overall_ = std::max(overall_, window_);
    for (auto& [mark, peak] : marks_) peak = std::max(peak, window_);
    window_ = now;
  }

  Bytes window_ = 0;
  Bytes overall_ = 0;                // before the window
  std::map<PeakMark, Bytes> marks_;  // the same of each
};

}  // namespace thimble
