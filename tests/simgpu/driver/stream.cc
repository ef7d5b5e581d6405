#include "tests/simgpu/driver/stream.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {
namespace {

// How much may be submitted to a stream and not done: what users have measured of CUDA's queues.
constexpr std::size_t kRoom = 1024;

// One lock for all streams: a stream may wait for a point of any other.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
};

Shared& GetShared() {
  static Shared* const shared = new Shared;  // threads of streams outlive everything
  return *shared;
}

thread_local bool in_host_function = false;

Clock& GetClock() { return Simulator::Get().clock; }
Races& GetRaces() { return Simulator::Get().races; }

void Know(const std::shared_ptr<Point>& point, Nanoseconds end) {
  point->known = true;
  point->when = std::max(end, GetClock().Now());
}

bool IsPast(const Point& point) { return point.known && point.when <= GetClock().Now(); }

Outcome NotInHostFunction() {
  return Illegal(CUDA_ERROR_NOT_PERMITTED, "a host function may not wait for the device");
}

std::string TitleOf(const Work& work) { return work.title.empty() ? work.name : work.title; }

// There is no caller to return a result to.
void Report(const Work& work, const Outcome& outcome) {
  if (outcome.illegal.empty()) return;
  Simulator::Get().log.WriteIllegal(std::string(work.name) + ", when it ran: " + outcome.illegal);
}

}  // namespace

Stream::Stream(int device) : device_(device), number_(GetRaces().AddStream(device)) {}

Sequence Stream::Enter(const Work& work) {
  if (!GetRaces().are_watched()) return 0;
  if (!work.parts) {
    return GetRaces().Submit(number_, TitleOf(work), work.operands);
  }
  for (const Work& part : work.parts()) Enter(part);
  return 0;
}

Outcome Stream::Submit(const Work& work) {
  {
    std::unique_lock<std::mutex> lock(GetShared().mutex);
    if (work.on_host || !IsIdleLocked()) {
      lock.unlock();
      const Outcome outcome = work.check ? work.check() : Success();
      if (!outcome.ok()) return outcome;
      const Sequence sequence = Enter(work);
      const Moment moment = work.on_host ? GetRaces().At(number_) : nullptr;
      lock.lock();
      Enqueue({work, sequence, moment, nullptr, nullptr});
      return Success();
    }
  }
  WaitForRoom();
  const Nanoseconds submitted = GetClock().Now();
  Outcome outcome;
  if (work.run) {
    outcome = work.run();
  } else if (work.check) {
    outcome = work.check();
  }
  if (!outcome.ok()) return outcome;
  GetRaces().Watch(number_, Enter(work), work.operands);
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  Place(work, submitted);
  return outcome;
}

// The shared lock is held.
void Stream::Place(const Work& work, Nanoseconds submitted) {
  if (work.parts) {
    for (const Work& part : work.parts()) Place(part, submitted);
    return;
  }
  end_ = GetClock().Place(Located(work), submitted, end_, TitleOf(work));
  ends_.push_back(end_);
  if (ends_.size() > kRoom) ends_.pop_front();
}

void Stream::WaitForRoom() {
  Nanoseconds time = 0;
  {
    std::lock_guard<std::mutex> lock(GetShared().mutex);
    if (ends_.size() < kRoom) return;
    time = ends_.front();
  }
  GetClock().WaitUntil(time);
}

std::shared_ptr<Point> Stream::Record() {
  auto point = std::make_shared<Point>();
  point->moment = GetRaces().At(number_);
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  if (IsIdleLocked()) {
    Know(point, end_);
  } else {
    Enqueue({Work(), 0, nullptr, nullptr, point});
  }
  return point;
}

void Stream::WaitFor(const std::shared_ptr<Point>& point) {
  if (point == nullptr) return;
  GetRaces().Join(number_, point->moment);
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  if (IsPast(*point)) return;
  if (point->known && IsIdleLocked()) {
    end_ = std::max(end_, point->when);
  } else {
    Enqueue({Work(), 0, nullptr, point, nullptr});
  }
}

bool Stream::IsIdle() const {
  const Moment moment = GetRaces().At(number_);
  {
    std::lock_guard<std::mutex> lock(GetShared().mutex);
    if (!queue_.empty() || busy_ || end_ > GetClock().Now()) return false;
  }
  GetRaces().Learn(moment);
  return true;
}

bool Stream::IsImmediate() const {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  return IsIdleLocked();
}

Outcome Stream::Synchronize() {
  const Moment moment = GetRaces().At(number_);
  Nanoseconds end = 0;
  {
    std::unique_lock<std::mutex> lock(GetShared().mutex);
    const auto is_empty = [this] { return queue_.empty() && !busy_; };
    const bool is_over = is_empty() && end_ <= GetClock().Now();
    if (!is_over && in_host_function) return NotInHostFunction();
    GetShared().changed.wait(lock, is_empty);
    end = end_;
  }
  GetClock().WaitUntil(end);
  GetRaces().Learn(moment);
  return Success();
}

void Stream::Hold() {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  held_ = true;
}

void Stream::Release() {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  held_ = false;
  GetShared().changed.notify_all();
}

std::shared_ptr<Graph> Stream::capture() const {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  return capture_;
}

void Stream::SetCapture(std::shared_ptr<Graph> graph) {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  capture_ = std::move(graph);
}

// The shared lock is held.
void Stream::Enqueue(Queued queued) {
  queue_.push_back(std::move(queued));
  if (!has_thread_) {
    has_thread_ = true;
    std::thread([self = shared_from_this()] { self->Run(); }).detach();
  }
  GetShared().changed.notify_all();
}

// Runs a stream's thread as long as there is work.
void Stream::Run() {
  std::unique_lock<std::mutex> lock(GetShared().mutex);
  const auto is_due = [this] {
    return !held_ && (queue_.front().before == nullptr || queue_.front().before->known);
  };
  while (!queue_.empty()) {
    GetShared().changed.wait(lock, is_due);
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    if (next.before != nullptr) end_ = std::max(end_, next.before->when);
    const Nanoseconds end = end_;
    lock.unlock();
    if (next.work.on_host) {
      GetClock().WaitUntil(end);
      GetRaces().Learn(next.moment);
    }
    const Nanoseconds began = GetClock().Now();
    in_host_function = next.work.on_host;
    if (next.work.run) Report(next.work, next.work.run());
    in_host_function = false;
    if (next.sequence != 0) GetRaces().Watch(number_, next.sequence, next.work.operands);
    lock.lock();
    Place(next.work, next.work.on_host ? GetClock().Now() : began);
    busy_ = false;
    if (next.reached != nullptr) Know(next.reached, end_);
    GetShared().changed.notify_all();
  }
  has_thread_ = false;
}

bool HasPassed(const std::shared_ptr<Point>& point) {
  if (point == nullptr) return true;
  {
    std::lock_guard<std::mutex> lock(GetShared().mutex);
    if (!IsPast(*point)) return false;
  }
  GetRaces().Learn(point->moment);
  return true;
}

Outcome Await(const std::shared_ptr<Point>& point) {
  if (point == nullptr) return Success();
  {
    std::unique_lock<std::mutex> lock(GetShared().mutex);
    if (!IsPast(*point) && in_host_function) return NotInHostFunction();
    GetShared().changed.wait(lock, [&point] { return point->known; });
  }
  GetClock().WaitUntil(point->when);
  GetRaces().Learn(point->moment);
  return Success();
}

}  // namespace simgpu
