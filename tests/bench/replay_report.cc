#include "tests/bench/replay_report.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/json.h"

namespace thimble::bench {
namespace {

template <typename T>
std::string JsonNumber(const std::optional<T>& value) {
  if (!value) return "null";
  if constexpr (std::is_floating_point_v<T>) return absl::StrFormat("%.6g", *value);
  return absl::StrCat(*value);
}

// A member of an optional struct, as an optional.
template <typename Struct, typename T>
std::optional<T> Member(const std::optional<Struct>& value, T Struct::*member) {
  if (!value) return std::nullopt;
  return (*value).*member;
}

template <typename T>
std::string Cell(const std::optional<T>& value, int width, int decimals) {
  if (!value) return absl::StrFormat("%*s", width, "-");
  return absl::StrFormat("%*.*f", width, decimals, static_cast<double>(*value));
}

std::optional<double> Ratio(const std::optional<Bytes>& bytes, Bytes of) {
  if (!bytes || of == 0) return std::nullopt;
  return static_cast<double>(*bytes) / static_cast<double>(of);
}

}  // namespace

std::optional<double> ReplayResult::fit_ratio() const { return Ratio(fit_bytes, max_live_bytes); }

std::string JsonLine(const ReplayResult& result) {
  return absl::StrCat(
      "{\"trace\": ", JsonString(result.trace), ", \"policy\": ", JsonString(result.policy),
      ", \"ops\": ", result.ops, ", \"max_live_bytes\": ", result.max_live_bytes,
      ", \"fit_bytes\": ", JsonNumber(result.fit_bytes),
      ", \"fit_ratio\": ", JsonNumber(result.fit_ratio()),
      ", \"peak_reserved_bytes\": ", JsonNumber(result.peak_reserved_bytes),
      ", \"driver_calls\": ", JsonNumber(Member(result.driver, &DriverUse::calls)),
      ", \"driver_calls_last_half\": ",
      JsonNumber(Member(result.driver, &DriverUse::calls_last_half)),
      ", \"modelled_driver_us\": ", JsonNumber(Member(result.driver, &DriverUse::modelled_us)),
      ", \"ns_per_op\": ", JsonNumber(Member(result.speed, &Speed::ns_per_op)),
      ", \"p999_ns\": ", JsonNumber(Member(result.speed, &Speed::p999_ns)),
      ", \"overlap_errors\": ", result.overlap_errors, "}\n");
}

std::string TableHeader() {
  return absl::StrFormat("%-20s %-10s %8s %9s %6s %8s %8s %9s %10s %7s %7s %7s\n", "trace",
                         "policy", "ops", "live MiB", "fit", "reserved", "calls", "last half",
                         "driver ms", "ns/op", "p99.9", "overlap");
}

std::string TableLine(const ReplayResult& result) {
  std::optional<double> driver_ms = Member(result.driver, &DriverUse::modelled_us);
  if (driver_ms) *driver_ms /= 1000;
  return absl::StrCat(
      absl::StrFormat("%-20s %-10s %8d %9.1f ", result.trace, result.policy, result.ops,
                      static_cast<double>(result.max_live_bytes) / kMiB),
      Cell(result.fit_ratio(), 6, 3), " ",
      Cell(Ratio(result.peak_reserved_bytes, result.max_live_bytes), 8, 3), " ",
      Cell(Member(result.driver, &DriverUse::calls), 8, 0), " ",
      Cell(Member(result.driver, &DriverUse::calls_last_half), 9, 0), " ", Cell(driver_ms, 10, 0),
      " ", Cell(Member(result.speed, &Speed::ns_per_op), 7, 0), " ",
      Cell(Member(result.speed, &Speed::p999_ns), 7, 0),
      absl::StrFormat(" %7d\n", result.overlap_errors));
}

}  // namespace thimble::bench
