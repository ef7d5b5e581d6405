#include "tests/bench/overlap_oracle.h"

#include <iterator>

namespace thimble::bench {

bool DisjointIntervals::Add(std::uint64_t begin, std::uint64_t bytes) {
  const auto next = ends_.lower_bound(begin);
  if (next != ends_.end() && next->first < begin + bytes) return false;
  if (next != ends_.begin() && std::prev(next)->second > begin) return false;
  ends_.emplace_hint(next, begin, begin + bytes);
  return true;
}

void OverlapOracle::Allocated(Address address, Bytes bytes) {
  if (!addresses_.Add(address.value(), bytes)) {
    ++errors_;
    return;
  }
  std::vector<Bytes>& begins = physical_begins_[address];
  const auto ranges = device_.PhysicalRanges(address, bytes);
  if (!ranges.ok()) {
    ++errors_;
    return;
  }
  for (const FileRange& range : *ranges) {
    if (physical_.Add(range.offset, range.bytes)) {
      begins.push_back(range.offset);
    } else {
      ++errors_;
    }
  }
}

void OverlapOracle::Freed(Address address) {
  const auto block = physical_begins_.find(address);
  if (block == physical_begins_.end()) return;  // its allocation was an error already
  for (const Bytes begin : block->second) physical_.Remove(begin);
  physical_begins_.erase(block);
  addresses_.Remove(address.value());
}

std::uint64_t CountOverlaps(const Workload& workload, PolicyKind kind, Bytes capacity,
                            Sizing sizing, int replays) {
  Subject subject(kind, capacity, sizing);
  OverlapOracle oracle(subject.device());
  Addresses addresses(workload.ids);
  for (int replay = 0; replay < replays; ++replay) {
    for (const TraceOp& op : workload.ops) {
      if (op.kind == TraceOpKind::kFree) oracle.Freed(Address(addresses[op.id]));
      if (!ReplayOp(op, &subject.policy(), &addresses)) return oracle.errors();
      if (op.kind == TraceOpKind::kAllocate) oracle.Allocated(Address(addresses[op.id]), op.bytes);
    }
  }
  return oracle.errors();
}

}  // namespace thimble::bench
