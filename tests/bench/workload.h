// A trace prepared for replay: it has only operations that move memory or begin a step, and frees
// everything at its end, so that replays can follow each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "allocator/offline/logs/trace_text.h"
#include "tests/bench/policy.h"

namespace thimble::bench {

struct Workload {
  std::string name;
  std::size_t recorded_ops = 0;  // allocations and frees of the trace itself
  // Begins with a step; without empty blocks; frees what the trace left live.
  std::vector<TraceOp> ops;
  std::uint32_t ids = 0;
  Bytes max_live_bytes = 0;
};

Workload MakeWorkload(std::string name, const Trace& trace);

// Where each block of a replay is, by TraceOp::id.
using Addresses = std::vector<std::uint64_t>;

inline bool ReplayOp(const TraceOp& op, Policy* policy, Addresses* addresses) {
  if (op.kind == TraceOpKind::kStep) {
    policy->BeginStep();
    return true;
  }
  std::uint64_t& address = (*addresses)[op.id];
  const auto stream = static_cast<std::uint64_t>(op.stream);
  if (op.kind == TraceOpKind::kAllocate) {
    address = policy->Allocate(op.bytes, stream, op.key);
    return address != 0;
  }
  policy->Free(address, stream);
  return true;
}

// False as soon as the policy is out of memory; it may only be destroyed then.
bool Replay(const Workload& workload, Policy* policy);

}  // namespace thimble::bench
