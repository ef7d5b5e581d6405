#include "allocator/observe/snapshot.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/json.h"

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
  JsonObject object;
#define THIMBLE_STATISTIC(name, meaning) object.Add(#name, stats.name);
#include "allocator/base/statistics.def"
  return object.Text();
}

std::string ToJson(const Snapshot& snapshot) {
  return absl::StrCat("{\"home_base\":", snapshot.home_base.value(),
                      ",\"chunk_bytes\":", snapshot.chunk_bytes,
                      ",\"stats\":", ToJson(snapshot.stats), ",\"pieces\":[",
                      absl::StrJoin(snapshot.pieces, ",", AppendPiece), "]}");
}

}  // namespace thimble
