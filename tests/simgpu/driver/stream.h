// Streams and events.
//
// The submitting thread does the effects of work on an idle stream at once. What takes time is only
// known to the clock: each stream has a line on which its work ends later and later, and nobody
// learns of an end before it. A host function runs on the stream's own thread, as on a real device,
// and later work on the stream waits for it. Work on a stream that a test holds waits, too.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda.h"
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/clock.h"
#include "tests/simgpu/driver/races.h"

namespace simgpu {

class Graph;

// Something for a device to do.
struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const char* name = "";           // of the call, for messages
  std::function<Outcome()> check;  // is it legal now? Changes nothing. May be empty
  std::function<Outcome()> run;    // does it. May be empty
  bool on_host = false;            // runs on the stream's thread, never on the caller's
  std::string title;               // of what runs, for messages; "": the call's
  std::vector<Operand> operands;   // memory that it was given
  Demand demand;
  std::function<std::vector<Work>()> parts;  // of a graph: what takes time in it. May be empty
};

// A place in a stream: behind all that was submitted before it.
struct Point {
  bool known = false;    // nothing before it waits for a host function or a test
  Nanoseconds when = 0;  // once it is known
  Moment moment;         // what is over then
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(int device);

  int device() const { return device_; }
  int number() const { return number_; }  // as messages call it

  // Illegal work is refused here, or logged when it runs later.
  Outcome Submit(const Work& work);
  std::shared_ptr<Point> Record();
  // Later work waits for `point`.
  void WaitFor(const std::shared_ptr<Point>& point);

  // Everything is over, and the host knows it now.
  bool IsIdle() const;
  // Work that is submitted now has had its effects before Submit() returns.
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
    Sequence sequence = 0;
    Moment moment;                   // what is over when it begins: a host function knows that
    std::shared_ptr<Point> before;   // not before this point; null: at once
    std::shared_ptr<Point> reached;  // set when it is done; may be null
  };

  bool IsIdleLocked() const { return queue_.empty() && !busy_ && !held_; }
  void Enqueue(Queued queued);
  // Work gets its place in the order of things.
  Sequence Enter(const Work& work);
  // Gives work its time on the line.
  void Place(const Work& work, Nanoseconds submitted);
  // A full queue makes the caller wait, as on a real device.
  void WaitForRoom();
  void Run();

  const int device_;
  const int number_;
  std::deque<Queued> queue_;
  std::deque<Nanoseconds> ends_;  // of the last works
  Nanoseconds end_ = 0;           // of all work that was placed
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

// After these the host knows what was over at the point.
bool HasPassed(const std::shared_ptr<Point>& point);
Outcome Await(const std::shared_ptr<Point>& point);

}  // namespace simgpu
