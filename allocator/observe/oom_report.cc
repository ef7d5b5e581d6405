#include "allocator/observe/oom_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thimble {
namespace {

const char* Remedy(const OomReport& report) {
  switch (report.kind) {
    case OomKind::kNone:
      return "";
    case OomKind::kTrue:
      return "The device has no more: use a smaller batch or a smaller model.";
    case OomKind::kFragmentation:
      return report.stitch ? "Enough is free, but in pieces smaller than a chunk."
                           : "Enough is free, but not in one piece, and stitching is off.";
    case OomKind::kLimit:
      return "Raise the limit: the device has more.";
    case OomKind::kDriver:
      return "The limit allows it, but the device did not give it: another process may hold it.";
  }
  return "";
}

void AppendBlocks(const OomReport::Holder& holder, std::string* text) {
  if (holder.key != 0 || holder.blocks == 1) {
    absl::StrAppend(text, FormatBytes(holder.bytes));
  } else {
    absl::StrAppend(text, holder.blocks, " x ", FormatBytes(holder.bytes / holder.blocks));
  }
}

}  // namespace

OomKind KindOf(const OomReport& report) {
  if (report.free >= report.requested) return OomKind::kFragmentation;
  // Not reserved + missing: a request may be as large as 2^64.
  const Bytes allowed = report.limit - std::min(report.reserved, report.limit);
  if (report.missing <= allowed) return OomKind::kDriver;
  return report.device_free >= report.missing ? OomKind::kLimit : OomKind::kTrue;
}

std::string FormatOom(const OomReport& report) {
  std::string text = absl::StrCat("out of memory: ", FormatBytes(report.requested), " requested; ",
                                  FormatBytes(report.in_use), " in use, ", FormatBytes(report.free),
                                  " free (largest block ", FormatBytes(report.largest_free));
  if (report.stitch) {
    absl::StrAppend(&text, ", ", FormatBytes(report.largest_stitchable), " with stitching");
  }
  absl::StrAppend(&text, "), ", FormatBytes(report.reserved), " reserved of a limit of ",
                  FormatBytes(report.limit), ". ");
  if (report.missing > 0) absl::StrAppend(&text, FormatBytes(report.missing), " more would do. ");
  absl::StrAppend(&text, Remedy(report));
  const char* separator = " Largest holders: ";
  for (const OomReport::Holder& holder : report.holders) {
    absl::StrAppend(&text, separator);
    if (!holder.name.empty()) {
      absl::StrAppend(&text, holder.name, " ");
    } else if (holder.key != 0) {
      absl::StrAppendFormat(&text, "%#x ", holder.key);
    }
    AppendBlocks(holder, &text);
    separator = "; ";
  }
  return text;
}

}  // namespace thimble
