// How far each stream has come, as far as the arena has asked.
//
// A block freed on a stream may be used again there at once: the stream keeps its own order. On
// another stream it may only be used, and its addresses may only be unmapped, when the device is
// past the free. Nothing is asked of the driver while every block stays on one stream, which is how
// frameworks train; the first stream that runs dry asks for the others.
//
//   epoch      1           2            3 (now)
//   stream ----f--f--P1----f--f--f--P2--f-->       f: a free, P: a recorded point
//
// Invariants:
//   F1  A free noted with epoch(tag) happened before point epoch(tag), which is recorded later.
//   F2  passed(tag) < epoch(tag), and every point up to passed(tag) has been passed.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/ids.h"
#include "allocator/driver/driver.h"
#include "allocator/stitch/block.h"

namespace thimble {

class Frontier {
 public:
  static constexpr int kMaxTags = 255;  // kCleanTag is not a stream

  explicit Frontier(Driver* driver) : driver_(driver), streams_(1) {}

  // The tag of `stream` if it was also the last one asked for, else kCleanTag: the hot path asks
  // for the same stream again and again.
  StreamTag LastTagIf(StreamId stream) const {
    return stream == last_stream_ ? last_tag_ : kCleanTag;
  }

  // The tag of `stream`, made on first sight. Nothing if all tags are taken: Retire() one.
  std::optional<StreamTag> TagOf(StreamId stream);

  // The same for a stream that is known; nothing for others.
  std::optional<StreamTag> FindTag(StreamId stream) const;

  // Forgets the stream behind `tag` so that another can have it. The caller has waited for it and
  // cleaned what it freed.
  void Retire(StreamTag tag);

  // What is freed on `tag` now carries this epoch (F1).
  Epoch NoteFree(StreamTag tag) {
    streams_[tag].freed = true;
    return streams_[tag].epoch;
  }

  // Closes the current epoch with a point if anything was freed in it, and asks without waiting
  // which points are behind the device. Afterwards passed() is up to date.
  [[nodiscard]] absl::Status Poll(StreamTag tag);

  // The same, but waits until everything freed so far has passed.
  [[nodiscard]] absl::Status Wait(StreamTag tag);

  // Closes all epochs. Who waits for the points that are returned, perhaps without the arena's
  // mutex, and polls then, has passed everything that was freed before.
  absl::StatusOr<std::vector<StreamPoint>> RecordAll();

  Epoch passed(StreamTag tag) const { return streams_[tag].passed; }
  StreamTag last_tag() const { return static_cast<StreamTag>(streams_.size() - 1); }

 private:
  struct Point {
    Epoch epoch;
    StreamSeq sequence;
  };
  struct Stream {
    StreamId id{};
    Epoch epoch{1};
    Epoch passed;
    bool freed = false;         // something was freed in the current epoch
    std::deque<Point> pending;  // recorded, not yet known to be passed
  };

  absl::Status CloseEpoch(Stream& stream);

  Driver* const driver_;
  std::vector<Stream> streams_;  // by tag
  absl::flat_hash_map<std::uint64_t, StreamTag> tags_;
  std::vector<StreamTag> retired_;
  StreamId last_stream_{};
  StreamTag last_tag_ = kCleanTag;
};

}  // namespace thimble
