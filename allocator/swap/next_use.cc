#include "allocator/swap/next_use.h"

namespace thimble {

NextUse::Use NextUse::BeginOp(std::uint64_t op, std::uint64_t step, std::uint32_t count) {
  ++now_;
  if (op == 0 || count == 0) return kUnknown;
  const bool full = gaps_.size() + count > kMaxUses;
  if (full && ops_.find(op) == ops_.end()) return kUnknown;
  Op& known = ops_[op];
  // If the step is unknown, every occurrence counts as the first.
  known.occurrence = step != 0 && step == known.step ? known.occurrence + 1 : 0;
  known.step = step;
  if (known.uses.size() <= known.occurrence) {
    if (full) return kUnknown;
    known.uses.resize(known.occurrence + 1);
  }
  Op::Uses& uses = known.uses[known.occurrence];
  if (uses.count < count) {
    if (full) return kUnknown;
    uses.first = static_cast<Use>(gaps_.size());
    uses.count = count;
    gaps_.resize(gaps_.size() + count, 0);
  }
  return uses.first;
}

}  // namespace thimble
