// The text form of a trace, one event per line:
//
//   A <id> <bytes> [stream] [key]           a block is allocated; zero bytes are legal
//   F <id>                                  and freed
//   S                                       a step of training begins
//   O <op> <seconds> r:<id,id> w:<id,id>    an op ran, read these live blocks and wrote those
//   # ...                                   a comment; empty lines are skipped as well
//
// Fields are separated by spaces or tabs; ids, sizes, streams and keys are decimal numbers. An id
// names one live block and may be used again after its F. What is live at the end of the text stays
// live: a recording may stop anywhere. A list of blocks may be empty: "r:" or "r:-".
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

// A free repeats the size, stream and key of its block, so that nobody has to look them up.
struct TraceOp {
  Bytes bytes = 0;
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint32_t id = 0;  // dense: below Trace::ids, reused (latest first) after a free
  TraceOpKind kind = TraceOpKind::kStep;
};

// What an op read and wrote. It moves no memory, so it is not among the ops of a Trace: whoever
// replays requests need not know of it.
struct TraceAccess {
  std::size_t at = 0;  // it came before Trace::ops[at], and after all of them if there is none
  std::string name;    // of the op; never empty, and without blanks
  std::int64_t ns = 0;
  std::vector<std::uint32_t> reads;   // TraceOp::id of live blocks, as often as the text has them
  std::vector<std::uint32_t> writes;  // the same
};

// What swapping copied while a trace was recorded. Only logs tell; it is not in the text.
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

// Reads a whole trace. The first line that is wrong is refused with its place (`name`:line), the
// text in question and what to do about it. No sum of live bytes may exceed 2^63.
absl::StatusOr<Trace> ParseTrace(absl::string_view text, absl::string_view name);

// The same for a file; one that cannot be read is kNotFound or kUnavailable.
absl::StatusOr<Trace> ReadTraceFile(const std::string& path);

// Writes a whole trace; kUnavailable if the file cannot be written.
absl::Status WriteTraceFile(const Trace& trace, const std::string& path);

// Adds all lines of `trace`.
void AppendTrace(const Trace& trace, std::string* text);

// Adds the line of `op`. Stream and key are written only where one of them is not zero.
void AppendTraceOp(const TraceOp& op, std::string* text);

// Adds the line of `access`, with its seconds to the nanosecond.
void AppendTraceAccess(const TraceAccess& access, std::string* text);

}  // namespace thimble
