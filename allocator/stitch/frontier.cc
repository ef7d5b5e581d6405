#include "allocator/stitch/frontier.h"

#include "allocator/base/status_macros.h"

namespace thimble {

std::optional<StreamTag> Frontier::TagOf(StreamId stream) {
  auto it = tags_.find(static_cast<std::uint64_t>(stream));
  if (it == tags_.end()) {
    StreamTag tag = kCleanTag;
    if (!retired_.empty()) {
      tag = retired_.back();
      retired_.pop_back();
    } else if (streams_.size() <= kMaxTags) {
      tag = static_cast<StreamTag>(streams_.size());
      streams_.emplace_back();
    } else {
      return std::nullopt;
    }
    streams_[tag].id = stream;
    it = tags_.emplace(static_cast<std::uint64_t>(stream), tag).first;
  }
  last_stream_ = stream;
  last_tag_ = it->second;
  return last_tag_;
}

std::optional<StreamTag> Frontier::FindTag(StreamId stream) const {
  const auto it = tags_.find(static_cast<std::uint64_t>(stream));
  if (it == tags_.end()) return std::nullopt;
  return it->second;
}

void Frontier::Retire(StreamTag tag) {
  tags_.erase(static_cast<std::uint64_t>(streams_[tag].id));
  retired_.push_back(tag);
  last_tag_ = kCleanTag;
}

absl::Status Frontier::CloseEpoch(Stream& stream) {
  if (!stream.freed) return absl::OkStatus();
  THIMBLE_ASSIGN_OR_RETURN(const StreamSeq sequence, driver_->Record(stream.id));
  stream.pending.push_back({stream.epoch, sequence});
  ++stream.epoch;
  stream.freed = false;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StreamPoint>> Frontier::RecordAll() {
  std::vector<StreamPoint> points;
  for (Stream& stream : streams_) {
    THIMBLE_RETURN_IF_ERROR(CloseEpoch(stream));
    if (!stream.pending.empty()) points.push_back({stream.id, stream.pending.back().sequence});
  }
  return points;
}

absl::Status Frontier::Poll(StreamTag tag) {
  Stream& stream = streams_[tag];
  THIMBLE_RETURN_IF_ERROR(CloseEpoch(stream));
  while (!stream.pending.empty()) {
    const Point& point = stream.pending.front();
    THIMBLE_ASSIGN_OR_RETURN(const bool passed, driver_->Passed(stream.id, point.sequence));
    if (!passed) break;
    stream.passed = point.epoch;
    stream.pending.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Frontier::Wait(StreamTag tag) {
  Stream& stream = streams_[tag];
  THIMBLE_RETURN_IF_ERROR(CloseEpoch(stream));
  if (stream.pending.empty()) return absl::OkStatus();
  const Point last = stream.pending.back();
  THIMBLE_RETURN_IF_ERROR(driver_->Wait(stream.id, last.sequence));
  stream.passed = last.epoch;
  stream.pending.clear();
  return absl::OkStatus();
}

}  // namespace thimble
