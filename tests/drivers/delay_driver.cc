#include "tests/drivers/delay_driver.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thimble {
namespace {

// SplitMix64: neighbouring numbers give unrelated results.
std::uint64_t Scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

absl::Status DelayDriver::Before(const Call& call) {
  Delay(call.call);
  return absl::OkStatus();
}

void DelayDriver::After(const Call& call, const absl::Status&) { Delay(call.call); }

void DelayDriver::Delay(DriverCall call) {
  if (!options_.calls.Contains(call)) return;
  const std::uint64_t number = delays_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t draw = Scramble(options_.seed ^ Scramble(number));
  // Half yield: long windows for a few, short ones for many.
  const std::uint64_t us = draw % 2 == 0 ? 0 : (draw >> 1) % (options_.max_us + std::uint64_t{1});
  if (us == 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
}

void DelayDriver::HoldStream(StreamId stream) {
  MutexLock lock(&mutex_);
  Stream& state = streams_[stream];
  if (state.held) return;
  state.held = true;
  state.free_until = state.recorded;
}

void DelayDriver::ReleaseStream(StreamId stream) {
  MutexLock lock(&mutex_);
  streams_[stream].held = false;
}

bool DelayDriver::IsHeld(StreamId stream, StreamSeq point) const {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end() || !found->second.held) return false;
  // A point that was never recorded is not held: the base refuses it.
  return point > found->second.free_until && point <= found->second.recorded;
}

absl::StatusOr<StreamSeq> DelayDriver::Record(StreamId stream) {
  absl::StatusOr<StreamSeq> point = InterceptingDriver::Record(stream);
  if (point.ok()) {
    MutexLock lock(&mutex_);
    Stream& state = streams_[stream];
    state.recorded = std::max(state.recorded, *point);
  }
  return point;
}

absl::StatusOr<bool> DelayDriver::Passed(StreamId stream, StreamSeq point) {
  if (IsHeld(stream, point)) return false;
  return InterceptingDriver::Passed(stream, point);
}

absl::Status DelayDriver::Wait(StreamId stream, StreamSeq point) {
  constexpr std::chrono::microseconds kPause(100);
  const auto fuse = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.fuse_ms);
  while (IsHeld(stream, point)) {
    if (std::chrono::steady_clock::now() >= fuse) {
      return absl::UnavailableError(absl::StrCat("point ", point.value(),
                                                 " of a held stream was not released within ",
                                                 options_.fuse_ms, " ms"));
    }
    std::this_thread::sleep_for(kPause);
  }
  return InterceptingDriver::Wait(stream, point);
}

}  // namespace thimble
