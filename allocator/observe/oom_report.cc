#include "allocator/observe/oom_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/bus.h"

namespace thimble {
namespace {

const char* Headline(OomKind kind) {
  switch (kind) {
    case OomKind::kNone:
      return "out of memory";
    case OomKind::kTrue:
      return "out of memory (true): memory in use and the request together exceed the device";
    case OomKind::kFragmentation:
      return "out of memory (fragmentation): enough memory is free, but not in one block";
    case OomKind::kLimit:
      return "out of memory (limit): the limit is reached, but the device has more memory";
    case OomKind::kDriver:
      return "out of memory (driver): the driver refused memory within the limit";
  }
  return "";
}

std::string LargestBlock(const OomReport& report) {
  const std::string whole = FormatBytes(report.largest_free);
  const std::string stitched = FormatBytes(report.largest_stitchable);
  if (report.swap.on) return whole;  // with swapping, pieces move and are not stitched
  return report.stitch ? absl::StrCat(stitched, " (", whole, " without stitching)")
                       : absl::StrCat(whole, " (", stitched, " with stitching, which is off)");
}

std::string HolderText(const OomReport::Holder& holder) {
  if (holder.key == 0) {
    const std::string each = FormatBytes(holder.bytes / holder.blocks);
    return holder.blocks == 1 ? each : absl::StrCat(holder.blocks, " x ", each);
  }
  return absl::StrCat(FormatBytes(holder.bytes), " ",
                      holder.name.empty() ? absl::StrFormat("%#x", holder.key) : holder.name);
}

// How long it takes to move `bytes` once on the default bus of swap plans, and how much longer a
// step takes if they move out and back in every step while nothing else happens.
std::string CopyTime(Bytes bytes, std::uint64_t step_ns) {
  constexpr auto out = static_cast<double>(kOutBytesPerSecond);
  constexpr auto in = static_cast<double>(kInBytesPerSecond);
  const auto moved = static_cast<double>(bytes);
  std::string text =
      absl::StrFormat("%.1f ms at %.1f GiB/s", 1e3 * moved / out, out / static_cast<double>(kGiB));
  if (step_ns == 0) return text;
  const double slowdown = 1e9 * (moved / out + moved / in) / static_cast<double>(step_ns);
  return absl::StrFormat(
      "%s; steps take an estimated %.1f %% longer if computation hides none of it", text,
      100 * slowdown);
}

std::vector<std::string> Fits(const OomReport& report) {
  std::vector<std::string> fits;
  if (report.fits_limit > 0) fits.push_back(absl::StrCat("limit:", report.fits_limit));
  if (report.fits_stitch) fits.push_back("stitch:on");
  if (report.swap.fits) fits.push_back(absl::StrCat("swap:auto (", SwapCost(report), ")"));
  return fits;
}

// Why swap:auto would not help, if known.
std::string SwapDoesNot(const OomReport& report) {
  const SwapOutlook& swap = report.swap;
  if (swap.fits || report.plan) return "";
  if (report.requested > report.limit) return "the request alone is larger than the limit";
  if (!swap.watched) return "";
  return absl::StrCat(FormatBytes(swap.stays), " cannot leave now, ", FormatBytes(swap.idle),
                      " can, and the host has room for ", FormatBytes(swap.host_room));
}

// Whether a setting remains that only a recorded run can judge: a plan may pack scattered memory,
// and without announcements the arena does not know which blocks are idle.
bool IsUndecided(const OomReport& report) {
  if (report.plan || report.swap.on || report.requested > report.limit) return false;
  const bool plan_may = report.in_use + report.requested <= report.limit;
  return plan_may || !report.swap.watched;
}

}  // namespace

OomKind KindOf(const OomReport& report) {
  if (report.shortfall > 0 && report.free >= report.requested) return OomKind::kFragmentation;
  if (report.fits_stitch) return OomKind::kFragmentation;
  // Not in_use + requested: a request may be as large as 2^64.
  const Bytes beside = report.device_total - std::min(report.in_use, report.device_total);
  if (report.requested > beside) return OomKind::kTrue;
  const Bytes allowed = report.limit - std::min(report.reserved, report.limit);
  if (report.shortfall > allowed && report.device_free >= report.shortfall) return OomKind::kLimit;
  return OomKind::kDriver;
}

std::string SwapCost(const OomReport& report) {
  if (!report.swap.fits) return "";
  if (report.swap.leaves == 0) return "pieces are moved, and no block leaves";
  return absl::StrCat(FormatBytes(report.swap.leaves), " leave the device, ",
                      CopyTime(report.swap.leaves, report.step_ns));
}

std::string FormatOom(const OomReport& report, const std::string& op) {
  std::string text = absl::StrCat(Headline(report.kind), ".\n  requested  ",
                                  FormatBytes(report.requested), op.empty() ? "" : " by ", op);
  absl::StrAppend(&text, "\n  in use     ", FormatBytes(report.in_use), "; ",
                  FormatBytes(report.reserved), " reserved of a limit of ",
                  FormatBytes(report.limit), "\n  free       ", FormatBytes(report.free),
                  "; largest possible block ", LargestBlock(report), "\n  device     ",
                  report.device_told ? FormatBytes(report.device_free) : "an unknown part",
                  " free of ", FormatBytes(report.device_total));
  if (report.held_outside > 0) {
    absl::StrAppend(&text, "; ", FormatBytes(report.held_outside),
                    " are held outside Thimble, by other processes or by the driver");
  }
  std::vector<std::string> holders;
  for (const OomReport::Holder& holder : report.holders) {
    holders.push_back(HolderText(holder));
  }
  absl::StrAppend(&text, "\n  holders    ",
                  holders.empty() ? "none" : absl::StrJoin(holders, "; "));
  if (report.missing > 0) {
    absl::StrAppend(&text, "\n  needs      ", FormatBytes(report.missing), " more");
  } else {
    absl::StrAppend(&text, "\n  refused    by the driver, although it reports enough free memory");
  }
  if (const std::vector<std::string> fits = Fits(report); !fits.empty()) {
    absl::StrAppend(&text, "\n  fits with  ", absl::StrJoin(fits, ", or "));
  }
  if (const std::string why = SwapDoesNot(report); !why.empty()) {
    absl::StrAppend(
        &text,
        report.swap.on ? "\n  swapping   does not help: " : "\n  not with   swap:auto: ", why);
  }
  if (IsUndecided(report)) {
    absl::StrAppend(&text,
                    "\n  also       `thimble run -- PROGRAM` records the program, tries the ",
                    "other settings, and says which fit");
  }
  return text;
}

}  // namespace thimble
