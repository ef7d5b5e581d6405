#include "tests/simgpu/driver/stream.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {
namespace {

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

void Pass(const std::shared_ptr<Point>& point) {
  point->passed = true;
  point->when = std::chrono::steady_clock::now();
}

Outcome NotInHostFunction() {
  return Illegal(CUDA_ERROR_NOT_PERMITTED, "a host function may not wait for the device");
}

// There is no caller to return a result to.
void Report(const Work& work, const Outcome& outcome) {
  if (outcome.illegal.empty()) return;
  Simulator::Get().log.WriteIllegal(std::string(work.name) + ", when it ran: " + outcome.illegal);
}

}  // namespace

Outcome Stream::Submit(const Work& work) {
  {
    std::unique_lock<std::mutex> lock(GetShared().mutex);
    if (work.on_host || !IsIdleLocked()) {
      if (work.check) {
        lock.unlock();
        const Outcome outcome = work.check();
        if (!outcome.ok()) return outcome;
        lock.lock();
      }
      Enqueue({work, nullptr, nullptr});
      return Success();
    }
  }
  if (work.check && !work.run) return work.check();
  return work.run ? work.run() : Success();
}

std::shared_ptr<Point> Stream::Record() {
  auto point = std::make_shared<Point>();
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  if (IsIdleLocked()) {
    Pass(point);
  } else {
    Enqueue({Work(), nullptr, point});
  }
  return point;
}

void Stream::WaitFor(const std::shared_ptr<Point>& point) {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  if (point == nullptr || point->passed) return;
  Enqueue({Work(), point, nullptr});
}

bool Stream::IsIdle() const {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  return queue_.empty() && !busy_;
}

bool Stream::IsImmediate() const {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  return IsIdleLocked();
}

Outcome Stream::Synchronize() {
  std::unique_lock<std::mutex> lock(GetShared().mutex);
  if (queue_.empty() && !busy_) return Success();
  if (in_host_function) return NotInHostFunction();
  GetShared().changed.wait(lock, [this] { return queue_.empty() && !busy_; });
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
    return !held_ && (queue_.front().before == nullptr || queue_.front().before->passed);
  };
  while (!queue_.empty()) {
    GetShared().changed.wait(lock, is_due);
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    in_host_function = next.work.on_host;
    if (next.work.run) Report(next.work, next.work.run());
    in_host_function = false;
    lock.lock();
    busy_ = false;
    if (next.reached != nullptr) Pass(next.reached);
    GetShared().changed.notify_all();
  }
  has_thread_ = false;
}

bool HasPassed(const std::shared_ptr<Point>& point) {
  std::lock_guard<std::mutex> lock(GetShared().mutex);
  return point == nullptr || point->passed;
}

Outcome Await(const std::shared_ptr<Point>& point) {
  std::unique_lock<std::mutex> lock(GetShared().mutex);
  if (point == nullptr || point->passed) return Success();
  if (in_host_function) return NotInHostFunction();
  GetShared().changed.wait(lock, [&point] { return point->passed; });
  return Success();
}

}  // namespace simgpu
