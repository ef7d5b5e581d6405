#include "tf_plugin/oom_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thimble::tf {
namespace {

std::string Size(std::uint64_t bytes) {
  constexpr double kKiB = 1024;
  const double size = static_cast<double>(bytes);
  if (size < kKiB) return absl::StrCat(bytes, " B");
  if (size < kKiB * kKiB) return absl::StrFormat("%.1f KiB", size / kKiB);
  if (size < kKiB * kKiB * kKiB) return absl::StrFormat("%.1f MiB", size / (kKiB * kKiB));
  return absl::StrFormat("%.2f GiB", size / (kKiB * kKiB * kKiB));
}

const char* KindOf(const thimble_oom& oom) {
  switch (oom.kind) {
    case THIMBLE_OOM_TRUE:
      return "the device is full";
    case THIMBLE_OOM_FRAGMENTATION:
      return "fragmentation";
    case THIMBLE_OOM_LIMIT:
      return "the limit of this process is reached";
    case THIMBLE_OOM_DRIVER:
      return "the device gives less than the limit allows";
    case THIMBLE_OOM_NONE:
      break;
  }
  return "unknown";
}

// Only what would help now: each case was told apart by what is free where.
std::string Remedy(const thimble_oom& oom) {
  switch (oom.kind) {
    case THIMBLE_OOM_TRUE:
      return absl::StrCat(Size(oom.missing),
                          " less: a smaller batch, mixed precision, or tf.recompute_grad");
    case THIMBLE_OOM_FRAGMENTATION:
      return absl::StrCat(Size(oom.missing), " less, or stitch:on in THIMBLE_CONF if it is off; ",
                          "stitching does not join pieces smaller than a chunk");
    case THIMBLE_OOM_LIMIT:
      return absl::StrCat("a limit higher by ", Size(oom.missing), "; the device has ",
                          Size(oom.device_free), " free (limit in THIMBLE_CONF, memory_limit, ",
                          "per_process_gpu_memory_fraction)");
    case THIMBLE_OOM_DRIVER:
      return absl::StrCat(Size(oom.missing), " more on the device: another process holds memory");
    case THIMBLE_OOM_NONE:
      break;
  }
  return "a smaller batch";
}

}  // namespace

std::string OomText(absl::string_view allocator, absl::string_view op, const thimble_oom& oom,
                    const thimble_arena* arena) {
  std::string text = absl::StrCat(allocator, " ran out of memory: ", KindOf(oom),
                                  ".\n  requested  ", Size(oom.requested));
  if (!op.empty()) absl::StrAppend(&text, " by ", op);
  absl::StrAppend(&text, "\n  in use     ", Size(oom.in_use), " of ", Size(oom.limit),
                  "\n  free       ", Size(oom.free), ", largest possible block ",
                  Size(oom.largest_stitchable), " (", Size(oom.largest_free),
                  " without stitching)\n  holders   ");
  const char* separator = " ";
  for (std::uint32_t i = 0; i < oom.holders; ++i) {
    const absl::string_view name = thimble_name_of(arena, oom.holder_key[i]);
    absl::StrAppend(&text, separator, Size(oom.holder_bytes[i]), " ");
    if (name.empty()) {
      absl::StrAppend(&text, "without an op name (", oom.holder_blocks[i], " blocks)");
    } else {
      absl::StrAppend(&text, name);
    }
    separator = "; ";
  }
  if (oom.holders == 0) absl::StrAppend(&text, " none");
  absl::StrAppend(&text, "\n  would fit with ", Remedy(oom), ".");
  return text;
}

}  // namespace thimble::tf
