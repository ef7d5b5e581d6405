#include "allocator/offline/logs/rmm_csv.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

constexpr char kHeader[] = "Thread,Time,Action,Pointer,Size,Stream";

// Hexadecimal with 0x, else decimal. "(nil)", as glibc prints a null pointer, is 0.
std::optional<std::uint64_t> ParseNumber(absl::string_view text) {
  std::uint64_t number = 0;
  if (text == "(nil)") return number;
  if (absl::ConsumePrefix(&text, "0x")) {
    return absl::SimpleHexAtoi(text, &number) ? std::make_optional(number) : std::nullopt;
  }
  return absl::SimpleAtoi(text, &number) ? std::make_optional(number) : std::nullopt;
}

// Nothing for a failed request, and for zero bytes, for which RMM returns a null pointer.
absl::StatusOr<std::optional<Event>> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  const auto wrong = [line](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(line), " ", why, ": ", kHeader));
  };
  if (fields.size() != 6) return wrong("does not have six fields");
  if (fields[2] == "allocate failure") return std::optional<Event>();
  if (fields[2] != "allocate" && fields[2] != "free") {
    return wrong("is neither 'allocate' nor 'free' nor 'allocate failure'");
  }
  const auto address = ParseNumber(fields[3]);
  const auto bytes = ParseNumber(fields[4]);
  const auto stream = ParseNumber(fields[5]);
  if (!address || !bytes || !stream) return wrong("has a field that is not a number");
  if (*address == 0) return std::optional<Event>();
  Event event;
  event.kind = fields[2] == "free" ? EventKind::kFree : EventKind::kAllocate;
  event.address = *address;
  event.bytes = event.kind == EventKind::kFree ? 0 : *bytes;
  event.stream = StreamId{*stream};
  return std::make_optional(event);
}

}  // namespace

bool IsRmmCsv(absl::string_view text) { return absl::StartsWith(text, kHeader); }

absl::StatusOr<std::vector<Event>> ParseRmmCsv(absl::string_view text, absl::string_view name) {
  std::vector<Event> events;
  std::size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (number == 1 || line.empty()) continue;
    const absl::StatusOr<std::optional<Event>> event = ParseLine(line);
    if (!event.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", number, ": ", event.status().message()));
    }
    if (event->has_value()) events.push_back(**event);
  }
  return events;
}

}  // namespace thimble
