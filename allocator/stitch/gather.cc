#include "allocator/stitch/gather.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace thimble {
namespace {

constexpr Bytes kAnyBytes = std::numeric_limits<Bytes>::max();

// The pieces, sorted into what they can serve as.
struct Parts {
  std::vector<Extent> whole;  // runs of whole chunks
  std::vector<Extent> heads;  // free ends of chunks
  std::vector<Extent> tails;  // free beginnings of chunks
};

// One or two pieces at the ends of a block that together hold what whole chunks do not.
struct EndPair {
  std::optional<Extent> head;
  std::optional<Extent> tail;
  Bytes wasted = 0;
};

Bytes ChunkEnd(const HomeSpace& home, Bytes offset) {
  const Chunk& chunk = home.chunk(home.ChunkAt(offset));
  return chunk.offset + chunk.bytes;
}

Bytes ChunkBegin(const HomeSpace& home, Bytes offset) {
  return home.chunk(home.ChunkAt(offset)).offset;
}

Parts SortParts(const HomeSpace& home, const std::vector<Extent>& pieces) {
  Parts parts;
  for (const Extent& piece : pieces) {
    Bytes begin = piece.begin;
    Bytes end = piece.end;
    if (ChunkBegin(home, begin) != begin) {
      begin = ChunkEnd(home, begin);
      if (begin > piece.end) continue;  // the middle of one chunk: touches neither end
      parts.heads.push_back({piece.begin, begin});
    }
    if (begin == end) continue;
    if (ChunkEnd(home, end - 1) != end) {
      end = ChunkBegin(home, end - 1);
      parts.tails.push_back({end, piece.end});
    }
    if (begin < end) parts.whole.push_back({begin, end});
  }
  const auto smaller = [](const Extent& a, const Extent& b) {
    return a.bytes() != b.bytes() ? a.bytes() < b.bytes() : a.begin < b.begin;
  };
  std::sort(parts.whole.begin(), parts.whole.end(), smaller);  // short runs first: keep long ones
  std::sort(parts.heads.begin(), parts.heads.end(), smaller);
  std::sort(parts.tails.begin(), parts.tails.end(), smaller);
  return parts;
}

// The smallest of `extents` (sorted) with at least `bytes`.
const Extent* Tightest(const std::vector<Extent>& extents, Bytes bytes) {
  const auto it =
      std::lower_bound(extents.begin(), extents.end(), bytes,
                       [](const Extent& extent, Bytes wanted) { return extent.bytes() < wanted; });
  return it == extents.end() ? nullptr : &*it;
}

Extent LastBytes(const Extent& extent, Bytes bytes) { return {extent.end - bytes, extent.end}; }
Extent FirstBytes(const Extent& extent, Bytes bytes) {
  return {extent.begin, extent.begin + bytes};
}

// One end that holds `bytes`, wasting as little as possible.
std::optional<EndPair> OneEnd(const Parts& parts, Bytes bytes) {
  const Extent* head = Tightest(parts.heads, bytes);
  const Extent* tail = Tightest(parts.tails, bytes);
  if (head == nullptr && tail == nullptr) return std::nullopt;
  if (tail != nullptr && (head == nullptr || tail->bytes() <= head->bytes())) {
    return EndPair{std::nullopt, FirstBytes(*tail, bytes), tail->bytes() - bytes};
  }
  return EndPair{LastBytes(*head, bytes), std::nullopt, head->bytes() - bytes};
}

// A head and a tail that hold `bytes` together, wasting as little as possible.
std::optional<EndPair> TwoEnds(const Parts& parts, Bytes bytes) {
  const Extent* best_head = nullptr;
  const Extent* best_tail = nullptr;
  std::size_t tail = parts.tails.size();
  for (const Extent& head : parts.heads) {
    if (head.bytes() >= bytes) break;  // one end would do
    while (tail > 0 && parts.tails[tail - 1].bytes() + head.bytes() >= bytes) --tail;
    if (tail == parts.tails.size()) continue;
    if (best_head == nullptr ||
        head.bytes() + parts.tails[tail].bytes() < best_head->bytes() + best_tail->bytes()) {
      best_head = &head;
      best_tail = &parts.tails[tail];
    }
  }
  if (best_head == nullptr) return std::nullopt;
  return EndPair{*best_head, FirstBytes(*best_tail, bytes - best_head->bytes()),
                 best_head->bytes() + best_tail->bytes() - bytes};
}

// Ends that hold `bytes` and strand at most `most_wasted`. Two only where one cannot hold them:
// every seam costs a mapping.
std::optional<EndPair> FindEnds(const Parts& parts, Bytes bytes, Bytes most_wasted) {
  std::optional<EndPair> ends = OneEnd(parts, bytes);
  if (!ends) ends = TwoEnds(parts, bytes);
  return ends && ends->wasted <= most_wasted ? ends : std::nullopt;
}

struct Picked {
  std::vector<Extent> chunks;         // in the order they were picked
  Bytes missing = 0;                  // less than any chunk that was not picked
  std::optional<Extent> extra_chunk;  // the smallest whole chunk that was not picked
};

Picked PickWholeChunks(const HomeSpace& home, const Parts& parts, Bytes bytes) {
  Picked picked;
  picked.missing = bytes;
  for (const Extent& run : parts.whole) {
    for (Bytes at = run.begin; at < run.end;) {
      const Extent chunk = {at, ChunkEnd(home, at)};
      if (chunk.bytes() <= picked.missing) {
        picked.chunks.push_back(chunk);
        picked.missing -= chunk.bytes();
      } else if (!picked.extra_chunk || chunk.bytes() < picked.extra_chunk->bytes()) {
        picked.extra_chunk = chunk;
      }
      if (picked.missing == 0) return picked;
      // All other chunks are at least one slot: once one of one slot is found, none is better.
      if (picked.extra_chunk && picked.missing < home.slot_bytes() &&
          picked.extra_chunk->bytes() == home.slot_bytes()) {
        return picked;
      }
      at = chunk.end;
    }
  }
  return picked;
}

// Decides what completes `picked`. Nothing if no combination does.
std::optional<EndPair> CompleteWith(const Parts& parts, Waste waste, Bytes most_wasted,
                                    Picked* picked) {
  if (picked->missing == 0) return EndPair{};
  if (auto ends = FindEnds(parts, picked->missing, most_wasted)) return ends;
  if (picked->extra_chunk) {
    return EndPair{std::nullopt, FirstBytes(*picked->extra_chunk, picked->missing)};
  }
  if (waste == Waste::kLittle) return std::nullopt;
  if (auto ends = FindEnds(parts, picked->missing, kAnyBytes)) return ends;
  // One whole chunk fewer and longer ends: the last combination that can still work.
  if (picked->chunks.empty()) return std::nullopt;
  auto longer = FindEnds(parts, picked->missing + picked->chunks.back().bytes(), kAnyBytes);
  if (longer) picked->chunks.pop_back();
  return longer;
}

void AppendMerged(std::vector<Extent>* extents, Extent extent) {
  if (!extents->empty() && extents->back().end == extent.begin) {
    extents->back().end = extent.end;
  } else {
    extents->push_back(extent);
  }
}

}  // namespace

Recipe Gather(const HomeSpace& home, const std::vector<Extent>& pieces, Bytes bytes, Waste waste) {
  const Bytes most_wasted = home.slot_bytes() / 8;
  const Parts parts = SortParts(home, pieces);
  Picked picked = PickWholeChunks(home, parts, bytes);
  const std::optional<EndPair> pair = CompleteWith(parts, waste, most_wasted, &picked);
  Recipe recipe;
  if (!pair) {
    // New chunks replace what is missing; what is less than a slot may still come from the ends.
    const Bytes rest = picked.missing & (home.slot_bytes() - 1);
    const bool ends_hold_rest =
        rest != 0 && rest < picked.missing && FindEnds(parts, rest, kAnyBytes);
    recipe.shortfall = ends_hold_rest ? picked.missing - rest : picked.missing;
    recipe.shortfall = AlignUp(recipe.shortfall, home.slot_bytes());
    return recipe;
  }
  const auto whole_chunk = [&](Bytes offset) {
    return Extent{ChunkBegin(home, offset), ChunkEnd(home, offset)};
  };
  if (pair->head) {
    recipe.extents.push_back(*pair->head);
    recipe.runs.push_back(whole_chunk(pair->head->begin));
    recipe.head_offset = pair->head->begin - recipe.runs.front().begin;
  }
  std::sort(picked.chunks.begin(), picked.chunks.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (const Extent& chunk : picked.chunks) {
    AppendMerged(&recipe.extents, chunk);
    AppendMerged(&recipe.runs, chunk);
  }
  if (pair->tail) {
    AppendMerged(&recipe.extents, *pair->tail);
    AppendMerged(&recipe.runs, whole_chunk(pair->tail->begin));
    recipe.repeats_chunk =
        pair->head && home.ChunkAt(pair->head->begin) == home.ChunkAt(pair->tail->begin);
  }
  return recipe;
}

Bytes LargestStitch(const HomeSpace& home, const std::vector<Extent>& pieces) {
  const Parts parts = SortParts(home, pieces);
  Bytes bytes = 0;
  for (const Extent& run : parts.whole) bytes += run.bytes();
  if (!parts.heads.empty()) bytes += parts.heads.back().bytes();
  if (!parts.tails.empty()) bytes += parts.tails.back().bytes();
  return bytes;
}

}  // namespace thimble
