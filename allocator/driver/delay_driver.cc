#include "allocator/driver/delay_driver.h"

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

class DelayDriver::Window {
 public:
  Window(DelayDriver& driver, DriverCall call)
      : driver_(driver), open_(driver.options_.calls.Contains(call)) {
    if (open_) driver_.Delay();
  }
  ~Window() {
    if (open_) driver_.Delay();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

 private:
  DelayDriver& driver_;
  const bool open_;
};

void DelayDriver::Delay() {
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
  const Window window(*this, DriverCall::kRecord);
  absl::StatusOr<StreamSeq> point = base().Record(stream);
  if (point.ok()) {
    MutexLock lock(&mutex_);
    Stream& state = streams_[stream];
    state.recorded = std::max(state.recorded, *point);
  }
  return point;
}

absl::StatusOr<bool> DelayDriver::Passed(StreamId stream, StreamSeq point) {
  const Window window(*this, DriverCall::kPassed);
  if (IsHeld(stream, point)) return false;
  return base().Passed(stream, point);
}

absl::Status DelayDriver::Wait(StreamId stream, StreamSeq point) {
  const Window window(*this, DriverCall::kWait);
  constexpr std::chrono::microseconds kPause(100);
  const auto fuse = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.fuse_ms);
  while (IsHeld(stream, point)) {
    if (std::chrono::steady_clock::now() >= fuse) {
      return absl::UnavailableError(absl::StrCat(
          "point ", point, " of a held stream was not released within ", options_.fuse_ms, " ms"));
    }
    std::this_thread::sleep_for(kPause);
  }
  return base().Wait(stream, point);
}

absl::StatusOr<Address> DelayDriver::Reserve(Bytes bytes, Bytes alignment) {
  const Window window(*this, DriverCall::kReserve);
  return base().Reserve(bytes, alignment);
}

absl::Status DelayDriver::Release(Address address, Bytes bytes) {
  const Window window(*this, DriverCall::kRelease);
  return base().Release(address, bytes);
}

absl::StatusOr<ChunkHandle> DelayDriver::Create(Bytes bytes) {
  const Window window(*this, DriverCall::kCreate);
  return base().Create(bytes);
}

absl::Status DelayDriver::Destroy(ChunkHandle chunk) {
  const Window window(*this, DriverCall::kDestroy);
  return base().Destroy(chunk);
}

absl::Status DelayDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  const Window window(*this, DriverCall::kMap);
  return base().Map(address, bytes, chunk);
}

absl::Status DelayDriver::Unmap(Address address, Bytes bytes) {
  const Window window(*this, DriverCall::kUnmap);
  return base().Unmap(address, bytes);
}

absl::Status DelayDriver::SetAccess(Address address, Bytes bytes) {
  const Window window(*this, DriverCall::kSetAccess);
  return base().SetAccess(address, bytes);
}

absl::Status DelayDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  const Window window(*this, DriverCall::kCopy);
  return base().Copy(device, host, bytes, direction);
}

absl::Status DelayDriver::PinHost(void* host, Bytes bytes) {
  const Window window(*this, DriverCall::kPinHost);
  return base().PinHost(host, bytes);
}

absl::Status DelayDriver::UnpinHost(void* host) {
  const Window window(*this, DriverCall::kUnpinHost);
  return base().UnpinHost(host);
}

absl::StatusOr<MemoryInfo> DelayDriver::GetMemoryInfo() {
  const Window window(*this, DriverCall::kGetMemoryInfo);
  return base().GetMemoryInfo();
}

}  // namespace thimble
