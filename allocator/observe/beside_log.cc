#include "allocator/observe/beside_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace thimble {
namespace {

// What there was to have in all: the limit, or the device if others hold too much of it.
Bytes CapacityOf(const OomReport& report) {
  if (!report.device_told) return report.limit;
  return std::min(report.limit, report.reserved + report.device_free);
}

}  // namespace

bool HasCompany(const std::string& log) {
  struct stat found = {};
  return stat(log.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

std::string PathBeside(const std::string& log, absl::string_view file) {
  return absl::StrCat(absl::StrReplaceAll(log, {{"%p", absl::StrCat(getpid())}}), file);
}

std::string ToJson(const OomReport& report) {
  const std::vector<std::pair<const char*, std::uint64_t>> fields = {
      {"kind", static_cast<std::uint64_t>(report.kind)},
      {"requested", report.requested},
      {"missing", report.missing},
      {"in_use", report.in_use},
      {"limit", report.limit},
      {"capacity", CapacityOf(report)},
      {"stitch", report.stitch ? 1 : 0},
      {"plan", report.plan ? 1 : 0},
      {"swap", report.swap.on ? 1 : 0},
      {"watched", report.swap.watched ? 1 : 0},
      {"fits_limit", report.fits_limit},
      {"fits_stitch", report.fits_stitch ? 1 : 0},
  };
  return absl::StrCat("{",
                      absl::StrJoin(fields, ", ",
                                    [](std::string* out, const auto& field) {
                                      absl::StrAppend(out, "\"", field.first, "\": ", field.second);
                                    }),
                      ", \"fits_swap\": \"", SwapCost(report), "\"}\n");
}

}  // namespace thimble
