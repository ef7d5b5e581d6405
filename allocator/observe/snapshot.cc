#include "allocator/observe/snapshot.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thimble {
namespace {

const char* Name(Snapshot::State state) {
  switch (state) {
    case Snapshot::State::kFree:
      return "free";
    case Snapshot::State::kUsed:
      return "used";
    case Snapshot::State::kVacant:
      return "vacant";
  }
  return "";
}

void AppendPiece(std::string* out, const Snapshot::Piece& piece) {
  absl::StrAppend(out, "{\"offset\":", piece.offset, ",\"bytes\":", piece.bytes, ",\"state\":\"",
                  Name(piece.state), "\"");
  if (piece.small) absl::StrAppend(out, ",\"small\":true");
  if (piece.state == Snapshot::State::kUsed) {
    absl::StrAppend(out, ",\"owner\":", piece.owner, ",\"key\":", piece.key);
    if (piece.stitched) absl::StrAppend(out, ",\"stitched\":true");
  }
  absl::StrAppend(out, "}");
}

}  // namespace

std::string ToJson(const ArenaStats& stats) {
  const std::vector<std::pair<const char*, std::uint64_t>> fields = {
      {"in_use", stats.in_use},
      {"magazines", stats.magazines},
      {"free_small", stats.free_small},
      {"free_large", stats.free_large},
      {"spare", stats.spare},
      {"reserved", stats.reserved},
      {"vacant", stats.vacant},
      {"limit", stats.limit},
      {"peak_in_use", stats.peak_in_use},
      {"peak_reserved", stats.peak_reserved},
      {"largest_free", stats.largest_free},
      {"largest_request", stats.largest_request},
      {"alias_active", stats.alias_active},
      {"alias_idle", stats.alias_idle},
      {"live_blocks", stats.live_blocks},
      {"allocations", stats.allocations},
      {"stitches", stats.stitches},
      {"stitch_hits", stats.stitch_hits},
      {"out_of_memory", stats.out_of_memory},
      {"plans", stats.plan.plans},
      {"plans_retired", stats.plan.retired},
      {"plan_seats", stats.plan.seats},
      {"plan_requests", stats.plan.requests},
      {"plan_hits", stats.plan.hits},
      {"plan_repairs", stats.plan.repairs},
      {"plan_misses", stats.plan.misses},
      {"plan_homeless", stats.plan.homeless},
      {"plan_height", stats.plan.height},
      {"plan_lower_bound", stats.plan.lower_bound},
      {"plan_repeats", stats.plan.repeats},
      {"plans_stale", stats.plan.stale},
      {"swapped", stats.swap.on_host},
      {"swap_out_bytes", stats.swap.out_bytes},
      {"swap_in_bytes", stats.swap.in_bytes},
      {"swap_late_bytes", stats.swap.late_bytes},
      {"swap_wait_ns", stats.swap.wait_ns},
      {"swap_out_ns", stats.swap.out_ns},
      {"swap_in_ns", stats.swap.in_ns},
      {"swap_goal", stats.swap.goal},
      {"swap_host_full", stats.swap.host_full},
  };
  return absl::StrCat("{",
                      absl::StrJoin(fields, ",",
                                    [](std::string* out, const auto& field) {
                                      absl::StrAppend(out, "\"", field.first, "\":", field.second);
                                    }),
                      "}");
}

std::string ToJson(const Snapshot& snapshot) {
  return absl::StrCat("{\"home_base\":", snapshot.home_base,
                      ",\"chunk_bytes\":", snapshot.chunk_bytes,
                      ",\"stats\":", ToJson(snapshot.stats), ",\"pieces\":[",
                      absl::StrJoin(snapshot.pieces, ",", AppendPiece), "]}");
}

}  // namespace thimble
