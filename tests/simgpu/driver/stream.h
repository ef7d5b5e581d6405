// Streams and events.
//
// The submitting thread does work on an idle stream at once: there is no time here, only order. A
// host function runs on the stream's own thread, as on a real device, and later work on the stream
// waits for it. Work on a stream that a test holds waits, too.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "cuda.h"
#include "tests/simgpu/driver/call.h"

namespace simgpu {

class Graph;

// Something for a device to do.
struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const char* name = "";           // of the call, for messages
  std::function<Outcome()> check;  // is it legal now? Changes nothing. May be empty
  std::function<Outcome()> run;    // does it. May be empty
  bool on_host = false;            // runs on the stream's thread, never on the caller's
};

// A place in a stream: behind all that was submitted before it.
struct Point {
  bool passed = false;
  std::chrono::steady_clock::time_point when;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(int device) : device_(device) {}

  int device() const { return device_; }

  // Illegal work is refused here, or logged when it runs later.
  Outcome Submit(const Work& work);
  std::shared_ptr<Point> Record();
  // Later work waits for `point`.
  void WaitFor(const std::shared_ptr<Point>& point);

  bool IsIdle() const;
  // Work that is submitted now is done before Submit() returns.
  bool IsImmediate() const;
  // CUDA_ERROR_NOT_PERMITTED inside a host function, where it would wait for itself.
  Outcome Synchronize();

  // While the stream is held, submitted work does not run.
  void Hold();
  void Release();

  // While a stream captures, work becomes nodes of a graph. Guarded like the queue.
  std::shared_ptr<Graph> capture() const;
  void SetCapture(std::shared_ptr<Graph> graph);

 private:
  struct Queued {
    Work work;
    std::shared_ptr<Point> before;   // not before this point; null: at once
    std::shared_ptr<Point> reached;  // set when it is done; may be null
  };

  bool IsIdleLocked() const { return queue_.empty() && !busy_ && !held_; }
  void Enqueue(Queued queued);
  void Run();

  const int device_;
  std::deque<Queued> queue_;
  bool busy_ = false;
  bool held_ = false;
  bool has_thread_ = false;
  std::shared_ptr<Graph> capture_;
};

struct Event {
  int device = 0;
  bool has_timing = true;
  std::shared_ptr<Point> point;    // of the last record; null: never recorded
  std::shared_ptr<Graph> capture;  // recorded while its stream captured
};

bool HasPassed(const std::shared_ptr<Point>& point);
Outcome Await(const std::shared_ptr<Point>& point);

}  // namespace simgpu
