#include "allocator/offline/schedule/problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"

namespace thimble::schedule {
namespace {

absl::Status CheckOps(const std::vector<Op>& ops) {
  if (ops.empty()) return absl::InvalidArgumentError("the step has no ops");
  if (ops.size() > kMaxOps) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step has ", ops.size(), " ops, more than ", kMaxOps));
  }
  Ns step = 0;
  const Op* before = &ops.back();
  for (const Op& op : ops) {
    if (op.ns < 0 || op.ns > kMaxStepNs - step) {
      return absl::InvalidArgumentError(
          absl::StrCat("op '", op.name, "' takes ", op.ns, " ns: the step is too long"));
    }
    step += op.ns;
    if (op.live_bytes < 0 || op.live_bytes > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("op '", op.name, "' has ", op.live_bytes, " bytes live"));
    }
    if (op.waiting_bytes < 0 || op.waiting_bytes > std::min(op.live_bytes, before->live_bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("op '", op.name, "' waits with ", op.waiting_bytes,
                       " bytes, more than it or the one before has live"));
    }
    before = &op;
  }
  if (step == 0) {
    return absl::InvalidArgumentError("the ops of the step take no time: record their durations");
  }
  return absl::OkStatus();
}

absl::Status CheckBlock(const Block& block, std::int32_t ops) {
  if (block.bytes < kLeastBytes || block.bytes > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has ", block.bytes, " bytes"));
  }
  if (block.touches.empty()) return absl::InvalidArgumentError("is never touched");
  std::int32_t before = -1;
  for (const std::int32_t touch : block.touches) {
    if (touch <= before) return absl::InvalidArgumentError("has touches that are not ascending");
    before = touch;
  }
  const std::int32_t most = block.is_cyclic ? ops : 2 * ops;
  if (block.touches.front() >= ops || before >= most) {
    return absl::InvalidArgumentError(absl::StrCat("is touched by op ", before, " of ", ops));
  }
  if (block.dies == Block::kLives) return absl::OkStatus();
  if (block.is_cyclic || block.dies <= before || block.dies > 2 * ops) {
    return absl::InvalidArgumentError(absl::StrCat("dies before op ", block.dies));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProblem(const Problem& problem) {
  THIMBLE_RETURN_IF_ERROR(CheckOps(problem.ops));
  const std::int32_t ops = static_cast<std::int32_t>(problem.ops.size());
  for (std::size_t i = 0; i < problem.blocks.size(); ++i) {
    const absl::Status status = CheckBlock(problem.blocks[i], ops);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("block ", i, " ", status.message()));
    }
  }
  return absl::OkStatus();
}

Ns StepNs(const Problem& problem) {
  Ns sum = 0;
  for (const Op& op : problem.ops) sum += op.ns;
  return sum;
}

std::int64_t PeakBytes(const Problem& problem) {
  std::int64_t peak = 0;
  for (const Op& op : problem.ops) peak = std::max(peak, op.live_bytes);
  return peak;
}

}  // namespace thimble::schedule
