// The text form of a trace, one event per line:
//
//   A <id> <bytes> [stream] [key]           a block is allocated; zero bytes are legal
//   F <id>                                  and freed
//   S                                       a step of training begins
//   O <op> <seconds> r:<id,id> w:<id,id>    an op ran, read these live blocks and wrote those
//   # ...                                   a comment; empty lines are skipped as well
//
// Fields are separated by spaces or tabs; ids, sizes, streams and keys are decimal numbers. An id
// names one live block and may be used again after its F. Blocks may be live at the end of the
// text, because a recording may stop anywhere. A list of blocks may be empty: "r:" or "r:-".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

enum class TraceOpKind : std::uint8_t { kAllocate, kFree, kStep };

// A free repeats the size, stream and key of its block, which saves a lookup.
struct TraceOp {
  Bytes bytes = 0;
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint32_t id = 0;  // dense: below Trace::ids, reused (latest first) after a free
  TraceOpKind kind = TraceOpKind::kStep;
};

// The blocks that an op read and wrote. It allocates nothing, so it is not among the ops of a
// Trace, and replays ignore it.
struct TraceAccess {
  std::size_t at = 0;  // it came before Trace::ops[at], or after the last one
  std::string name;    // of the op; never empty, and without blanks
  std::int64_t ns = 0;
  std::vector<std::uint32_t> reads;   // TraceOp::id of live blocks, as often as the text has them
  std::vector<std::uint32_t> writes;  // the same
};

// The copies of swapping while the trace was recorded. Only logs have them, not the text.
struct TraceCopied {
  Bytes out_bytes = 0;
  Bytes in_bytes = 0;
  std::uint64_t out_ns = 0;
  std::uint64_t in_ns = 0;
};

struct Trace {
  std::vector<TraceOp> ops;
  std::vector<TraceAccess> accesses;  // in the order of the text
  std::uint32_t ids = 0;              // the largest number of blocks live at once
  Bytes max_live_bytes = 0;           // the largest sum of requested bytes live at once
  TraceCopied copied;
};

// Reads a whole trace. The error names the first wrong line (`name`:line), quotes the text and says
// what to do. The sum of live bytes may never exceed 2^63.
absl::StatusOr<Trace> ParseTrace(absl::string_view text, absl::string_view name);

// The same for a file; kNotFound or kUnavailable if it cannot be read.
absl::StatusOr<Trace> ReadTraceFile(const std::string& path);

// Writes a whole trace; kUnavailable if the file cannot be written.
absl::Status WriteTraceFile(const Trace& trace, const std::string& path);

// Appends all lines of `trace`.
void AppendTrace(const Trace& trace, std::string* text);

// Appends the line of `op`, with stream and key unless both are zero.
void AppendTraceOp(const TraceOp& op, std::string* text);

// Appends the line of `access`. Its seconds have nine decimals.
void AppendTraceAccess(const TraceAccess& access, std::string* text);

}  // namespace thimble
