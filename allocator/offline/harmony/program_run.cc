#include "allocator/offline/harmony/program_run.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace thimble::harmony {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kLookAhead = 2;  // tasks after the running one whose copies may begin

}  // namespace

ProgramRun::ProgramRun(const Program& program, const Network& network, const Server& server)
    : program_(program),
      network_(network),
      gpus_(server.gpu_count()),
      waits_(program.waits),
      users_(program.users),
      times_(program.ops.size()),
      heads_(program.queues.size(), 0),
      running_(program.queues.size(), Op::kNone),
      used_(gpus_, 0),
      peak_(gpus_, 0),
      place_(gpus_, 0),
      has_changed_(gpus_, true),
      held_(gpus_),
      units_(gpus_) {
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    memory_.push_back(server.memory_bytes - program.resident[gpu]);
    held_[gpu].assign(program.need[gpu].size(), 0);
    for (const int units : program.units[gpu]) units_[gpu].emplace_back(units, 0.0);
  }
  started_.assign(program.ops.size(), false);
  bytes_.assign(program.ops.size(), 0);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    for (const int* t = program.makes.begin(op); t != program.makes.end(op); ++t) {
      bytes_[op] += program.tensors[*t].bytes;
    }
  }
  left_.assign(program.ops.size(), 0);
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    const std::vector<int>& ops = Queue(QueueOf(gpu, Stream::kCompute));
    double left = 0;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      left += program.ops[*op].seconds;
      left_[*op] = left;
    }
  }
}

bool ProgramRun::Go(double most_seconds) {
  most_seconds_ = most_seconds;
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    for (const double need : program_.need[gpu]) {
      if (need > memory_[gpu]) return false;
    }
  }
  StartAll();
  while (!is_too_long_ && Advance()) StartAll();
  return done_ == program_.ops.size();
}

// What the running task needs now only has to fit. Prefetching must leave room for everything the
// task may still need.
bool ProgramRun::HasRoom(int op) const {
  const Op& one = program_.ops[op];
  const int gpu = one.action.gpu;
  const double bytes = bytes_[op];
  if (bytes == 0) return true;
  if (used_[gpu] + bytes > memory_[gpu]) return false;
  const std::vector<int>& compute = Queue(QueueOf(gpu, Stream::kCompute));
  const std::size_t head = heads_[QueueOf(gpu, Stream::kCompute)];
  if (one.action.stream == Stream::kCompute || head == compute.size()) return true;
  const int place = program_.ops[compute[head]].place;
  const int unit = program_.ops[compute[head]].unit;
  if (one.place < place || (one.place == place && one.unit <= unit)) return true;  // needed now
  const double owned = held_[gpu][place] - Ahead(gpu, place, unit);
  if (one.place == place) {
    const double reserve = program_.need[gpu][place] - owned;
    return used_[gpu] + bytes + std::max(0.0, reserve) <= memory_[gpu];
  }
  // For a later task, only what it begins with, and only if all tasks before it can run beside
  // that.
  if (one.unit > (program_.preferred[gpu][one.place] <= memory_[gpu] ? 1 : 0)) return false;
  const double preferred = std::min(program_.preferred[gpu][place], memory_[gpu]);
  double reserve = std::max(0.0, preferred - owned);
  for (int next = place + 1; next < one.place; ++next) {
    reserve = std::max(reserve, program_.need[gpu][next] - held_[gpu][next]);
  }
  return used_[gpu] + bytes + reserve <= memory_[gpu];
}

double ProgramRun::Ahead(int gpu, int place, int unit) const {
  const std::vector<double>& units = units_[gpu][place];
  return std::accumulate(units.begin() + unit + 1, units.end(), 0.0);
}

void ProgramRun::Start(int op, int queue) {
  const Op& one = program_.ops[op];
  started_[op] = true;
  is_too_long_ |= now_ + left_[op] > most_seconds_;
  running_[queue] = op;
  times_[op].begin = now_;
  for (const int* t = program_.makes.begin(op); t != program_.makes.end(op); ++t) {
    const Tensor& tensor = program_.tensors[*t];
    used_[tensor.gpu] += tensor.bytes;
    held_[tensor.gpu][tensor.place] += tensor.bytes;
    units_[tensor.gpu][tensor.place][tensor.unit] += tensor.bytes;
  }
  const Action& action = one.action;
  const bool is_copy = action.stream == Stream::kIn || action.stream == Stream::kOut ||
                       action.kind == Kind::kReceive;
  if (!is_copy) {
    times_[op].end = now_ + one.seconds;
    return;
  }
  times_[op].end = kNever;
  flows_.push_back({op, action.bytes, 0});
  flows_changed_ = true;
  if (one.from != Op::kNone) running_[QueueOf(one.from, Stream::kPeerOut)] = op;
}

bool ProgramRun::StartCompute(int gpu) {
  bool has_started = false;
  for (const Stream stream : {Stream::kCompute, Stream::kHost}) {
    const int queue = QueueOf(gpu, stream);
    const std::vector<int>& ops = Queue(queue);
    if (running_[queue] != Op::kNone || heads_[queue] == ops.size()) continue;
    const int op = ops[heads_[queue]];
    if (waits_[op] > 0 || !HasRoom(op)) continue;
    Start(op, queue);
    ++heads_[queue];
    has_started = true;
  }
  return has_started;
}

bool ProgramRun::StartFirst(int gpu, Stream stream) {
  const int queue = QueueOf(gpu, stream);
  if (running_[queue] != Op::kNone) return false;
  const std::vector<int>& ops = Queue(queue);
  std::size_t& head = heads_[queue];
  while (head < ops.size() && started_[ops[head]]) ++head;
  for (std::size_t i = head; i < ops.size(); ++i, ++work_) {
    const int op = ops[i];
    const Op& one = program_.ops[op];
    if (one.place > place_[gpu] + kLookAhead) break;
    if (started_[op] || waits_[op] > 0) continue;
    if (one.from != Op::kNone && running_[QueueOf(one.from, Stream::kPeerOut)] != Op::kNone) {
      continue;
    }
    if (!HasRoom(op)) continue;
    Start(op, queue);
    return true;
  }
  return false;
}

void ProgramRun::StartAll() {
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    if (!has_changed_[gpu]) continue;
    has_changed_[gpu] = false;
    for (bool has_started = true; has_started;) {
      has_started = StartCompute(gpu);
      has_started |= StartFirst(gpu, Stream::kIn);
      has_started |= StartFirst(gpu, Stream::kOut);
      has_started |= StartFirst(gpu, Stream::kPeerIn);
    }
  }
}

void ProgramRun::Finish(int op, int queue) {
  const Op& one = program_.ops[op];
  times_[op].end = now_;
  running_[queue] = Op::kNone;
  has_changed_[one.action.gpu] = true;
  if (one.from != Op::kNone) {  // the sender is free again for any receiver
    running_[QueueOf(one.from, Stream::kPeerOut)] = Op::kNone;
    has_changed_.assign(gpus_, true);
  }
  ++done_;
  for (const int* f = program_.followers.begin(op); f != program_.followers.end(op); ++f) {
    if (--waits_[*f] == 0) has_changed_[program_.ops[*f].action.gpu] = true;
  }
  for (const int* t = program_.uses.begin(op); t != program_.uses.end(op); ++t) {
    if (--users_[*t] > 0) continue;
    const Tensor& tensor = program_.tensors[*t];
    has_changed_[tensor.gpu] = true;
    used_[tensor.gpu] -= tensor.bytes;
    held_[tensor.gpu][tensor.place] -= tensor.bytes;
    units_[tensor.gpu][tensor.place][tensor.unit] -= tensor.bytes;
  }
  int& place = place_[one.action.gpu];
  const std::vector<int>& last = program_.last_compute[one.action.gpu];
  if (place < static_cast<int>(last.size()) && last[place] == op) ++place;
}

// Advances to the next end of an op; false if none is running.
bool ProgramRun::Advance() {
  if (flows_changed_) {
    routes_.clear();
    for (const Flow& flow : flows_) {
      const Op& op = program_.ops[flow.op];
      const bool is_out = op.action.stream == Stream::kOut;
      const int from = is_out ? op.action.gpu : op.from == Op::kNone ? kHost : op.from;
      routes_.push_back(&network_.RouteOf(from, is_out ? kHost : op.action.gpu));
    }
    network_.Share(routes_, rates_);
    for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i].rate = rates_[i];
    flows_changed_ = false;
  }
  double next = kNever;
  for (const Flow& flow : flows_) next = std::min(next, now_ + flow.left / flow.rate);
  for (const int op : running_) {
    if (op != Op::kNone) next = std::min(next, times_[op].end);
  }
  if (next == kNever) return false;
  work_ += running_.size();
  const double passed = next - now_;
  // Copies of zero bytes begin and end at once, so tensors used only by them never take memory.
  for (int gpu = 0; gpu < gpus_ && passed > 0; ++gpu) peak_[gpu] = std::max(peak_[gpu], used_[gpu]);
  now_ = next;
  std::size_t kept = 0;
  std::size_t count = flows_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Flow& flow = flows_[i];
    flow.left -= flow.rate * passed;
    if (flow.left <= flow.rate * 1e-12 + 1e-6) {
      const Action& action = program_.ops[flow.op].action;
      Finish(flow.op, QueueOf(action.gpu, action.stream));
      flows_changed_ = true;
    } else {
      flows_[kept++] = flow;
    }
  }
  flows_.resize(kept);
  for (std::size_t queue = 0; queue < running_.size(); ++queue) {
    const int op = running_[queue];
    if (op != Op::kNone && times_[op].end <= now_) Finish(op, static_cast<int>(queue));
  }
  return true;
}

std::vector<double> ProgramRun::Peak() const {
  std::vector<double> peak = peak_;
  for (int gpu = 0; gpu < gpus_; ++gpu) peak[gpu] += program_.resident[gpu];
  return peak;
}

std::vector<Action> ProgramRun::Actions() const {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const Op& op = program_.ops[i];
    Action action = op.action;
    action.begin = times_[i].begin;
    action.end = times_[i].end;
    actions.push_back(action);
    if (op.from == Op::kNone) continue;
    action.kind = Kind::kSend;
    action.stream = Stream::kPeerOut;
    action.gpu = op.from;
    action.bytes = 0;
    actions.push_back(action);
  }
  return actions;
}

}  // namespace thimble::harmony
