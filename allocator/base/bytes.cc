#include "allocator/base/bytes.h"

#include <array>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace thimble {
namespace {

struct Unit {
  char letter;
  Bytes bytes;
};
constexpr std::array<Unit, 4> kUnits = {{{'T', kTiB}, {'G', kGiB}, {'M', kMiB}, {'K', kKiB}}};

absl::Status BadSize(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text),
                   "' is not a size: write bytes (1048576) or 512KiB, 64MiB, 8GiB, 1.5TiB"));
}

// Removes a trailing unit from `number` and returns its factor; 1 if there is no unit.
Bytes StripUnit(absl::string_view* number) {
  for (const Unit& unit : kUnits) {
    const char with_ib[] = {unit.letter, 'i', 'B', '\0'};
    const char alone[] = {unit.letter, '\0'};
    if (absl::ConsumeSuffix(number, with_ib) || absl::ConsumeSuffix(number, alone)) {
      return unit.bytes;
    }
  }
  absl::ConsumeSuffix(number, "B");
  return 1;
}

}  // namespace

std::string FormatBytes(Bytes bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.bytes) {
      return absl::StrFormat("%.2f %ciB", static_cast<double>(bytes) / unit.bytes, unit.letter);
    }
  }
  return absl::StrCat(bytes, " B");
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  constexpr Bytes kLargest = Bytes{1} << 63;
  absl::string_view number = text;
  const Bytes unit = StripUnit(&number);
  std::uint64_t whole = 0;
  if (absl::SimpleAtoi(number, &whole)) {
    if (whole > kLargest / unit) return BadSize(text);
    return whole * unit;
  }
  double fraction = 0;
  if (unit == 1 || number.empty() || !(number[0] >= '0' && number[0] <= '9') ||
      !absl::SimpleAtod(number, &fraction) || !std::isfinite(fraction) ||
      fraction * static_cast<double>(unit) > static_cast<double>(kLargest)) {
    return BadSize(text);
  }
  return static_cast<Bytes>(fraction * static_cast<double>(unit));
}

}  // namespace thimble
