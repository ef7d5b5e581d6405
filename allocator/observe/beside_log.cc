#include "allocator/observe/beside_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/json.h"

namespace thimble {
namespace {

// The memory available to the arena in all: the limit, or less if others hold too much of the
// device.
Bytes CapacityOf(const OomReport& report) {
  if (!report.device_told) return report.limit;
  return std::min(report.limit, report.reserved + report.device_free);
}

}  // namespace

bool HasFilesBeside(const std::string& log) {
  struct stat found = {};
  return stat(log.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

std::string PathBeside(const std::string& log, absl::string_view file) {
  return absl::StrCat(absl::StrReplaceAll(log, {{"%p", absl::StrCat(getpid())}}), file);
}

std::string ToJson(const OomReport& report) {
  return absl::StrCat(JsonObject()
                          .Add("kind", static_cast<int>(report.kind))
                          .Add("requested", report.requested)
                          .Add("missing", report.missing)
                          .Add("in_use", report.in_use)
                          .Add("limit", report.limit)
                          .Add("capacity", CapacityOf(report))
                          .Add("stitch", report.stitch)
                          .Add("plan", report.plan)
                          .Add("swap", report.swap.on)
                          .Add("watched", report.swap.watched)
                          .Add("fits_limit", report.fits_limit)
                          .Add("fits_stitch", report.fits_stitch)
                          .Add("fits_swap", SwapCost(report))
                          .Text(),
                      "\n");
}

}  // namespace thimble
