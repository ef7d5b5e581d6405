#include "tests/workloads/trace_writer.h"

namespace thimble::workloads {

std::uint32_t TraceWriter::Allocate(Bytes bytes) {
  std::uint32_t id = static_cast<std::uint32_t>(sizes_.size());
  if (spare_ids_.empty()) {
    sizes_.push_back(bytes);
  } else {
    id = spare_ids_.back();
    spare_ids_.pop_back();
    sizes_[id] = bytes;
  }
  TraceOp op;
  op.kind = TraceOpKind::kAllocate;
  op.id = id;
  op.bytes = bytes;
  AppendTraceOp(op, &text_);
  live_bytes_ += bytes;
  ++ops_;
  return id;
}

void TraceWriter::Free(std::uint32_t id) {
  TraceOp op;
  op.kind = TraceOpKind::kFree;
  op.id = id;
  AppendTraceOp(op, &text_);
  live_bytes_ -= sizes_[id];
  sizes_[id] = kNotLive;
  spare_ids_.push_back(id);
  ++ops_;
}

void TraceWriter::Step() { AppendTraceOp(TraceOp{}, &text_); }

void TraceWriter::Access(const std::string& op, std::int64_t ns, std::vector<std::uint32_t> reads,
                         std::vector<std::uint32_t> writes) {
  AppendTraceAccess({/*at=*/0, op, ns, std::move(reads), std::move(writes)}, &text_);
}

std::string TraceWriter::Finish() && {
  for (std::uint32_t id = 0; id < sizes_.size(); ++id) {
    if (sizes_[id] != kNotLive) Free(id);
  }
  return std::move(text_);
}

}  // namespace thimble::workloads
