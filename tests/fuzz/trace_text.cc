// ParseTrace: any text is either refused with its place, or it is the same trace when it is written
// out and read again.
#include "allocator/offline/logs/trace_text.h"

#include <string>

#include "absl/strings/match.h"
#include "tests/fuzz/input.h"

namespace {

bool AreEqual(const thimble::TraceOp& a, const thimble::TraceOp& b) {
  return a.kind == b.kind && a.id == b.id && a.bytes == b.bytes && a.stream == b.stream &&
         a.key == b.key;
}

bool AreEqual(const thimble::TraceAccess& a, const thimble::TraceAccess& b) {
  return a.at == b.at && a.name == b.name && a.ns == b.ns && a.reads == b.reads &&
         a.writes == b.writes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = thimble::ParseTrace(thimble::Input(data, size).Rest(), "fuzz.trace");
  if (!trace.ok()) {
    FUZZ_EXPECT(trace.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StartsWith(trace.status().message(), "fuzz.trace:"));
    return 0;
  }
  for (const thimble::TraceOp& op : trace->ops) {
    FUZZ_EXPECT(op.kind == thimble::TraceOpKind::kStep || op.id < trace->ids);
  }
  std::string text;
  AppendTrace(*trace, &text);
  const auto again = thimble::ParseTrace(text, "again.trace");
  FUZZ_EXPECT(again.ok());
  FUZZ_EXPECT(again->ids == trace->ids);
  FUZZ_EXPECT(again->max_live_bytes == trace->max_live_bytes);
  FUZZ_EXPECT(again->ops.size() == trace->ops.size());
  for (std::size_t i = 0; i < trace->ops.size(); ++i) {
    FUZZ_EXPECT(AreEqual(again->ops[i], trace->ops[i]));
  }
  FUZZ_EXPECT(again->accesses.size() == trace->accesses.size());
  for (std::size_t i = 0; i < trace->accesses.size(); ++i) {
    FUZZ_EXPECT(AreEqual(again->accesses[i], trace->accesses[i]));
  }
  return 0;
}
