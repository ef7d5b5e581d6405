#include "allocator/offline/schedule/swap_problem.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/logs/log_trace.h"

namespace thimble {
namespace {

// Ops [begin, end) of a trace, and the accesses that came before ops in (begin, end].
struct OpRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::size_t CountAccesses(const Trace& trace, OpRange step) {
  const auto first =
      std::lower_bound(trace.accesses.begin(), trace.accesses.end(), step.begin,
                       [](const TraceAccess& it, std::size_t at) { return it.at < at; });
  const auto last =
      std::upper_bound(first, trace.accesses.end(), step.end,
                       [](std::size_t at, const TraceAccess& it) { return at < it.at; });
  return static_cast<std::size_t>(last - first);
}

OpRange FindStep(const Trace& trace) {
  std::vector<std::size_t> marks;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == TraceOpKind::kStep) marks.push_back(i);
  }
  const auto step_before = [&](std::size_t mark) {
    return OpRange{marks[mark - 1] + 1, marks[mark]};
  };
  std::size_t most = 0;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    most = std::max(most, CountAccesses(trace, step_before(i)));
  }
  for (std::size_t i = marks.size(); most > 0 && i > 1; --i) {
    const OpRange step = step_before(i - 1);
    if (2 * CountAccesses(trace, step) >= most) return step;
  }
  const OpRange rest = {marks.empty() ? 0 : marks.back() + 1, trace.ops.size()};
  if (!marks.empty() && CountAccesses(trace, rest) > 0) return rest;
  return {trace.accesses.front().at, trace.ops.size()};
}

class Recording {
 public:
  Recording(const Trace& trace, OpRange step) : trace_(trace), step_(step), live_(trace.ids) {}

  schedule::Problem Read() &&;

 private:
  struct Life {
    schedule::Block block;
    std::int64_t born = 0;  // number of its step; the problem's step is 0
    bool is_old = false;    // allocated before the step of the problem
    bool is_live = true;
    std::string first;                // access, by op, occurrence and place among its blocks
    bool was_touched_before = false;  // in an earlier step
  };

  void BeginStep();
  void See(const TraceAccess& access);
  void Touch(std::uint32_t id, std::int32_t op, const std::string& who);
  void Allocate(const TraceOp& op);
  void Free(const TraceOp& op);
  void CloseTheCircle();
  void JoinLives();
  bool is_in_step() const { return at_ >= step_.begin; }

  const Trace& trace_;
  const OpRange step_;
  std::size_t at_ = 0;
  std::int64_t now_ = 0;           // steps begun so far
  std::vector<std::size_t> live_;  // index into lives_, by TraceOp::id
  std::vector<Life> lives_;
  absl::flat_hash_map<std::string, std::int32_t> occurrences_;  // in this step, by name
  // Since the last access:
  std::int64_t bytes_ = 0;    // live now
  std::int64_t waiting_ = 0;  // before the first allocation
  std::int64_t highest_ = 0;  // after an allocation; 0 if there was none
  schedule::Problem problem_;
};

void Recording::BeginStep() {
  occurrences_.clear();
  waiting_ = bytes_;
  highest_ = 0;
}

void Recording::Touch(std::uint32_t id, std::int32_t op, const std::string& who) {
  Life& life = lives_[live_[id]];
  if (life.first.empty()) life.first = absl::StrCat(who, " ", life.block.bytes);
  if (!is_in_step()) {
    life.was_touched_before = true;
    return;
  }
  std::vector<std::int32_t>& touches = life.block.touches;
  if (touches.empty() || touches.back() != op) touches.push_back(op);
}

void Recording::See(const TraceAccess& access) {
  const std::int32_t occurrence = occurrences_[access.name]++;
  const std::int32_t op = static_cast<std::int32_t>(problem_.ops.size());
  int place = 0;
  for (const std::vector<std::uint32_t>* blocks : {&access.reads, &access.writes}) {
    for (const std::uint32_t id : *blocks) {
      Touch(id, op, absl::StrCat(access.name, " ", occurrence, " ", place++));
    }
  }
  if (is_in_step()) {
    problem_.ops.push_back(
        {access.name, occurrence, access.ns, std::max(bytes_, highest_), waiting_});
  }
  waiting_ = bytes_;
  highest_ = 0;
}

void Recording::Allocate(const TraceOp& op) {
  Life life;
  life.block.bytes = static_cast<std::int64_t>(op.bytes);
  life.block.key = op.key;
  life.block.id = lives_.size();
  life.born = now_;
  life.is_old = !is_in_step();
  live_[op.id] = lives_.size();
  lives_.push_back(std::move(life));
  bytes_ += static_cast<std::int64_t>(op.bytes);
  highest_ = std::max(highest_, bytes_);
}

void Recording::Free(const TraceOp& op) {
  Life& life = lives_[live_[op.id]];
  life.is_live = false;
  if (is_in_step()) life.block.dies = static_cast<std::int32_t>(problem_.ops.size());
  bytes_ -= static_cast<std::int64_t>(op.bytes);
  if (highest_ == 0) waiting_ = bytes_;
}

// Events after the last access of a step belong to the first op of the next.
void Recording::CloseTheCircle() {
  schedule::Op& first = problem_.ops.front();
  first.live_bytes = std::max({first.live_bytes, highest_, bytes_});
  if (highest_ != 0) first.waiting_bytes = waiting_;
  for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
    schedule::Op& op = problem_.ops[i];
    const schedule::Op& before = i == 0 ? problem_.ops.back() : problem_.ops[i - 1];
    op.waiting_bytes = std::min({op.waiting_bytes, op.live_bytes, before.live_bytes});
  }
}

// Matches blocks that were allocated in the step before and freed in this one with blocks that were
// allocated in this step and are left: those with the same first access are one block.
void Recording::JoinLives() {
  absl::flat_hash_map<std::string, Life*> left;
  for (Life& life : lives_) {
    if (!life.is_old && life.is_live && !life.first.empty()) left.emplace(life.first, &life);
  }
  const std::int32_t ops = static_cast<std::int32_t>(problem_.ops.size());
  for (Life& life : lives_) {
    const bool goes_on = life.is_old && !life.is_live && life.was_touched_before &&
                         life.block.dies != schedule::Block::kLives && life.born + 1 == now_;
    const auto other = goes_on ? left.find(life.first) : left.end();
    if (other == left.end()) continue;
    schedule::Block& block = other->second->block;
    for (const std::int32_t touch : life.block.touches) block.touches.push_back(touch + ops);
    block.dies = life.block.dies + ops;
    life.block.touches.clear();
    left.erase(other);
  }
}

schedule::Problem Recording::Read() && {
  auto access = trace_.accesses.begin();
  for (at_ = 0; at_ <= step_.end; ++at_) {
    if (at_ == step_.begin) BeginStep();
    for (; access != trace_.accesses.end() && access->at == at_; ++access) See(*access);
    if (at_ == step_.end) break;
    const TraceOp& op = trace_.ops[at_];
    if (op.kind == TraceOpKind::kAllocate) Allocate(op);
    if (op.kind == TraceOpKind::kFree) Free(op);
    if (op.kind == TraceOpKind::kStep) {
      occurrences_.clear();
      ++now_;
    }
  }
  CloseTheCircle();
  for (Life& life : lives_) life.block.is_cyclic = life.is_old && life.is_live;
  JoinLives();
  for (Life& life : lives_) {
    if (life.block.bytes < schedule::kLeastBytes || life.block.touches.empty()) continue;
    problem_.blocks.push_back(std::move(life.block));
  }
  return std::move(problem_);
}

// 0 if too few bytes were copied to measure it.
std::int64_t PerSecond(Bytes bytes, std::uint64_t ns) {
  constexpr Bytes kEnough = 64 * kMiB;
  if (bytes < kEnough || ns == 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(ns));
}

}  // namespace

absl::StatusOr<schedule::Problem> SwapProblemFromTrace(const Trace& trace, absl::string_view name) {
  if (trace.accesses.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(name), " has no O lines: swap planning needs the accesses of ops"));
  }
  if (trace.max_live_bytes > static_cast<Bytes>(schedule::kMaxBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(name), " has ", trace.max_live_bytes, " bytes live, more than 2^46"));
  }
  schedule::Problem problem = Recording(trace, FindStep(trace)).Read();
  problem.measured = {PerSecond(trace.copied.out_bytes, trace.copied.out_ns),
                      PerSecond(trace.copied.in_bytes, trace.copied.in_ns)};
  const absl::Status status = schedule::CheckProblem(problem);
  if (status.ok()) return problem;
  return absl::InvalidArgumentError(absl::StrCat(Quote(name), ": ", status.message()));
}

absl::StatusOr<schedule::Problem> ReadSwapProblem(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, ReadTraceOrLog(path));
  return SwapProblemFromTrace(trace, path);
}

}  // namespace thimble
