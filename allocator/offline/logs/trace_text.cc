#include "allocator/offline/logs/trace_text.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"

namespace thimble {
namespace {

constexpr Bytes kMaxBytes = Bytes{1} << 63;
constexpr std::uint32_t kMaxIds = ~std::uint32_t{0};
constexpr double kMaxSeconds = 86400;  // of an op; every nanosecond below is exact in a double
constexpr std::int64_t kNsPerSecond = 1000000000;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// nullopt unless `text` is all digits and fits in 64 bits.
std::optional<std::uint64_t> ParseNumber(absl::string_view text) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  if (text.empty()) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const std::uint64_t digit = static_cast<std::uint64_t>(c - '0');
    if (number > (kMax - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

// Removes the first field from `line` and returns it; empty at the end.
absl::string_view NextField(absl::string_view* line) {
  std::size_t begin = 0;
  while (begin < line->size() && IsBlank((*line)[begin])) ++begin;
  std::size_t end = begin;
  while (end < line->size() && !IsBlank((*line)[end])) ++end;
  const absl::string_view field = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return field;
}

class Parser {
 public:
  explicit Parser(absl::string_view name) : name_(name) {}

  absl::Status ParseLine(absl::string_view line);
  Trace TakeTrace() && { return std::move(trace_); }

 private:
  struct LiveBlock {
    TraceOp op;
    std::uint64_t line = 0;
  };

  absl::Status ParseAllocate(absl::string_view fields);
  absl::Status ParseFree(absl::string_view fields);
  absl::Status ParseStep(absl::string_view fields);
  absl::Status ParseAccess(absl::string_view fields);

  absl::StatusOr<std::uint64_t> TakeNumber(absl::string_view* fields, absl::string_view what,
                                           absl::string_view form) const;
  // Zero at the end of the line.
  absl::StatusOr<std::uint64_t> TakeOptionalNumber(absl::string_view* fields,
                                                   absl::string_view what) const;
  absl::StatusOr<std::int64_t> TakeDuration(absl::string_view* fields) const;
  // "r:1,2", where `prefix` is "r:".
  absl::StatusOr<std::vector<std::uint32_t>> TakeBlocks(absl::string_view* fields,
                                                        absl::string_view prefix) const;
  absl::Status ExpectEnd(absl::string_view fields, absl::string_view form) const;
  absl::StatusOr<std::uint32_t> TakeId();
  absl::Status Error(absl::string_view text, absl::string_view wrong_and_remedy) const;

  const absl::string_view name_;
  std::uint64_t line_ = 0;
  absl::string_view text_;  // of that line
  Trace trace_;
  Bytes live_bytes_ = 0;
  absl::flat_hash_map<std::uint64_t, LiveBlock> live_;  // by the id in the text
  std::vector<std::uint32_t> spare_ids_;
};

constexpr absl::string_view kAllocateForm = "write 'A <id> <bytes> [stream] [key]'";
constexpr absl::string_view kFreeForm = "write 'F <id>'";
constexpr absl::string_view kAccessForm = "write 'O <op> <seconds> r:<id,id> w:<id,id>'";

absl::Status Parser::Error(absl::string_view text, absl::string_view wrong_and_remedy) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ":", line_, ": ", Quote(text), " ", wrong_and_remedy));
}

absl::StatusOr<std::uint64_t> Parser::TakeNumber(absl::string_view* fields, absl::string_view what,
                                                 absl::string_view form) const {
  const absl::string_view field = NextField(fields);
  if (field.empty()) return Error(text_, absl::StrCat("lacks ", what, ": ", form));
  const std::optional<std::uint64_t> number = ParseNumber(field);
  if (!number) {
    return Error(field, absl::StrCat("is not ", what, ": write a decimal number below 2^64"));
  }
  return *number;
}

absl::StatusOr<std::uint64_t> Parser::TakeOptionalNumber(absl::string_view* fields,
                                                         absl::string_view what) const {
  absl::string_view rest = *fields;
  if (NextField(&rest).empty()) return 0;
  return TakeNumber(fields, what, kAllocateForm);
}

absl::Status Parser::ExpectEnd(absl::string_view fields, absl::string_view form) const {
  const absl::string_view extra = NextField(&fields);
  if (extra.empty()) return absl::OkStatus();
  return Error(extra, absl::StrCat("is one field too many: ", form));
}

absl::StatusOr<std::uint32_t> Parser::TakeId() {
  if (!spare_ids_.empty()) {
    const std::uint32_t id = spare_ids_.back();
    spare_ids_.pop_back();
    return id;
  }
  if (trace_.ids == kMaxIds) return Error("A", "makes more than 2^32 - 1 live blocks: free some");
  return trace_.ids++;
}

absl::Status Parser::ParseAllocate(absl::string_view fields) {
  absl::string_view id_text = fields;
  THIMBLE_ASSIGN_OR_RETURN(const std::uint64_t id, TakeNumber(&fields, "an id", kAllocateForm));
  absl::string_view size_text = fields;
  THIMBLE_ASSIGN_OR_RETURN(const Bytes bytes, TakeNumber(&fields, "a size", kAllocateForm));
  THIMBLE_ASSIGN_OR_RETURN(const std::uint64_t stream, TakeOptionalNumber(&fields, "a stream"));
  THIMBLE_ASSIGN_OR_RETURN(const std::uint64_t key, TakeOptionalNumber(&fields, "a key"));
  THIMBLE_RETURN_IF_ERROR(ExpectEnd(fields, kAllocateForm));
  if (bytes > kMaxBytes) {
    return Error(NextField(&size_text), "bytes are more than 2^63: write a smaller size");
  }
  if (bytes > kMaxBytes - live_bytes_) {
    return Error(NextField(&size_text), "bytes more bring the live sum over 2^63: free some first");
  }
  const auto [block, is_new] = live_.try_emplace(id);
  if (!is_new) {
    return Error(NextField(&id_text), absl::StrCat("is live since line ", block->second.line,
                                                   ": free it first or use another id"));
  }
  THIMBLE_ASSIGN_OR_RETURN(const std::uint32_t dense, TakeId());
  block->second = {{bytes, StreamId{stream}, key, dense, TraceOpKind::kAllocate}, line_};
  trace_.ops.push_back(block->second.op);
  live_bytes_ += bytes;
  trace_.max_live_bytes = std::max(trace_.max_live_bytes, live_bytes_);
  return absl::OkStatus();
}

absl::Status Parser::ParseFree(absl::string_view fields) {
  absl::string_view id_text = fields;
  THIMBLE_ASSIGN_OR_RETURN(const std::uint64_t id, TakeNumber(&fields, "an id", kFreeForm));
  THIMBLE_RETURN_IF_ERROR(ExpectEnd(fields, kFreeForm));
  const auto block = live_.find(id);
  if (block == live_.end()) {
    return Error(NextField(&id_text),
                 "is not live: remove the line, or add the A line that the recording missed");
  }
  TraceOp op = block->second.op;
  live_.erase(block);
  op.kind = TraceOpKind::kFree;
  trace_.ops.push_back(op);
  spare_ids_.push_back(op.id);
  live_bytes_ -= op.bytes;
  return absl::OkStatus();
}

absl::Status Parser::ParseStep(absl::string_view fields) {
  THIMBLE_RETURN_IF_ERROR(ExpectEnd(fields, "write 'S' alone"));
  trace_.ops.push_back(TraceOp{});
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> Parser::TakeDuration(absl::string_view* fields) const {
  const absl::string_view field = NextField(fields);
  if (field.empty()) return Error(text_, absl::StrCat("lacks its seconds: ", kAccessForm));
  double seconds = 0;
  if (!absl::SimpleAtod(field, &seconds) || !(seconds >= 0 && seconds <= kMaxSeconds)) {
    return Error(field, absl::StrCat("is not a duration: write seconds from 0 to ", kMaxSeconds));
  }
  return std::llround(seconds * kNsPerSecond);
}

absl::StatusOr<std::vector<std::uint32_t>> Parser::TakeBlocks(absl::string_view* fields,
                                                              absl::string_view prefix) const {
  const absl::string_view field = NextField(fields);
  absl::string_view ids = field;
  if (!absl::ConsumePrefix(&ids, prefix)) {
    return Error(field.empty() ? text_ : field,
                 absl::StrCat(field.empty() ? "lacks " : "is not ", prefix, ": ", kAccessForm));
  }
  std::vector<std::uint32_t> blocks;
  if (ids.empty() || ids == "-") return blocks;
  while (true) {
    const std::size_t length = std::min(ids.find(','), ids.size());
    const absl::string_view id_text = ids.substr(0, length);
    const std::optional<std::uint64_t> id = ParseNumber(id_text);
    if (!id) return Error(field, absl::StrCat("is not a list of ids: ", kAccessForm));
    const auto block = live_.find(*id);
    if (block == live_.end()) {
      return Error(id_text, "is not live: remove it, or add the A line that the recording missed");
    }
    blocks.push_back(block->second.op.id);
    if (length == ids.size()) return blocks;
    ids.remove_prefix(length + 1);
  }
}

absl::Status Parser::ParseAccess(absl::string_view fields) {
  TraceAccess access;
  access.at = trace_.ops.size();
  access.name = std::string(NextField(&fields));
  if (access.name.empty()) return Error(text_, absl::StrCat("lacks an op: ", kAccessForm));
  THIMBLE_ASSIGN_OR_RETURN(access.ns, TakeDuration(&fields));
  THIMBLE_ASSIGN_OR_RETURN(access.reads, TakeBlocks(&fields, "r:"));
  THIMBLE_ASSIGN_OR_RETURN(access.writes, TakeBlocks(&fields, "w:"));
  THIMBLE_RETURN_IF_ERROR(ExpectEnd(fields, kAccessForm));
  trace_.accesses.push_back(std::move(access));
  return absl::OkStatus();
}

absl::Status Parser::ParseLine(absl::string_view line) {
  ++line_;
  text_ = line;
  absl::string_view fields = line;
  const absl::string_view letter = NextField(&fields);
  if (letter.empty() || letter[0] == '#') return absl::OkStatus();
  if (letter == "A") return ParseAllocate(fields);
  if (letter == "F") return ParseFree(fields);
  if (letter == "S") return ParseStep(fields);
  if (letter == "O") return ParseAccess(fields);
  return Error(letter, "is not an event: a line starts with A, F, S, O or #");
}

}  // namespace

absl::StatusOr<Trace> ParseTrace(absl::string_view text, absl::string_view name) {
  Parser parser(name);
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    THIMBLE_RETURN_IF_ERROR(parser.ParseLine(text.substr(0, length)));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return std::move(parser).TakeTrace();
}

absl::StatusOr<Trace> ReadTraceFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseTrace(text, path);
}

absl::Status WriteTraceFile(const Trace& trace, const std::string& path) {
  std::string text;
  AppendTrace(trace, &text);
  return WriteWholeFile(text, path);
}

void AppendTrace(const Trace& trace, std::string* text) {
  auto access = trace.accesses.begin();
  for (std::size_t at = 0; at <= trace.ops.size(); ++at) {
    for (; access != trace.accesses.end() && access->at == at; ++access) {
      AppendTraceAccess(*access, text);
    }
    if (at < trace.ops.size()) AppendTraceOp(trace.ops[at], text);
  }
}

void AppendTraceOp(const TraceOp& op, std::string* text) {
  switch (op.kind) {
    case TraceOpKind::kAllocate:
      absl::StrAppend(text, "A ", op.id, " ", op.bytes);
      if (op.stream != StreamId{} || op.key != 0) {
        absl::StrAppend(text, " ", static_cast<std::uint64_t>(op.stream), " ", op.key);
      }
      break;
    case TraceOpKind::kFree:
      absl::StrAppend(text, "F ", op.id);
      break;
    case TraceOpKind::kStep:
      absl::StrAppend(text, "S");
      break;
  }
  text->push_back('\n');
}

void AppendTraceAccess(const TraceAccess& access, std::string* text) {
  const std::string seconds =
      absl::StrFormat("%d.%09d", access.ns / kNsPerSecond, access.ns % kNsPerSecond);
  absl::StrAppend(text, "O ", access.name, " ", seconds, " r:", absl::StrJoin(access.reads, ","),
                  " w:", absl::StrJoin(access.writes, ","), "\n");
}

}  // namespace thimble
