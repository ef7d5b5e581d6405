#include "allocator/stitch/stitcher.h"

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/base/status_macros.h"

namespace thimble {

Stitcher::Stitcher(Heap* heap, HomeSpace* home, AliasSpace* aliases, Frontier* frontier)
    : heap_(heap), home_(home), aliases_(aliases), frontier_(frontier) {}

// --- Windows of cached aliases -----------------------------------------------------------------

// Fills extents_ with the home bytes behind [start, start + bytes) of `alias`, one extent per
// block, if `tag` may use all of them.
bool Stitcher::CollectWindow(const Alias& alias, Bytes start, Bytes bytes, StreamTag tag) {
  extents_.clear();
  Bytes skip = start;
  for (const Extent& run : alias.runs) {
    if (skip >= run.bytes()) {
      skip -= run.bytes();
      continue;
    }
    Bytes at = run.begin + skip;
    skip = 0;
    for (BlockId id = heap_->At(at); at < run.end && bytes > 0; id = heap_->block(id).next) {
      if (!heap_->UsableBy(id, tag)) return false;
      const Bytes end = std::min({heap_->EndOf(id), run.end, at + bytes});
      extents_.push_back({at, end});
      bytes -= end - at;
      at = end;
    }
    if (bytes == 0) return true;
  }
  return false;
}

// Where in `alias` a window of `bytes` begins whose bytes are all free for `tag`.
std::optional<Bytes> Stitcher::FindWindow(const Alias& alias, Bytes bytes, StreamTag tag) const {
  Bytes position = 0;  // in the alias
  Bytes free = 0;      // bytes before position that are free without a gap
  int looked_at = 0;
  for (const Extent& run : alias.runs) {
    BlockId id = heap_->At(run.begin);
    for (Bytes at = run.begin; at < run.end; id = heap_->block(id).next) {
      if (++looked_at > kBlocksPerCandidate) return std::nullopt;
      const Bytes end = std::min(heap_->EndOf(id), run.end);
      position += end - at;
      free = heap_->UsableBy(id, tag) ? free + (end - at) : 0;
      if (free >= bytes) return position - free;
      at = end;
    }
  }
  return std::nullopt;
}

std::optional<Placed> Stitcher::TakeCached(Bytes bytes, StreamTag tag) {
  // The same size usually finds the same window: the work of a step repeats itself.
  if (const auto it = last_window_.find(bytes); it != last_window_.end()) {
    const Window window = it->second;
    if (cache_[window.alias].generation == window.generation && cache_[window.alias].listed &&
        CollectWindow(aliases_->alias(window.alias), window.start, bytes, tag)) {
      return Place(window.alias, window.start, bytes);
    }
  }
  Window best;
  Bytes best_bytes = ~Bytes{0};
  int candidates = kCandidates;
  for (AliasId id = newest_; id != kNoAlias && candidates > 0; id = cache_[id].older) {
    const Alias& alias = aliases_->alias(id);
    if (alias.bytes < bytes || alias.bytes >= best_bytes || cache_[id].repeats_chunk) continue;
    --candidates;
    if (const std::optional<Bytes> start = FindWindow(alias, bytes, tag)) {
      best = {id, cache_[id].generation, *start};
      best_bytes = alias.bytes;
    }
  }
  if (best.alias == kNoAlias) return std::nullopt;
  THIMBLE_CHECK(CollectWindow(aliases_->alias(best.alias), best.start, bytes, tag),
                "S1: a window that was found free is not");
  Remember(bytes, best);
  return Place(best.alias, best.start, bytes);
}

// Takes extents_ out of the heap as one chain, seen through the window of `id` at `start`.
Placed Stitcher::Place(AliasId id, Bytes start, Bytes bytes) {
  BlockId first = kNoBlock;
  BlockId last = kNoBlock;
  Bytes placed = 0;
  for (const Extent& extent : extents_) {
    const BlockId block = heap_->Take(heap_->At(extent.begin), extent);
    placed += extent.bytes();
    if (first == kNoBlock) {
      first = block;
    } else {
      heap_->block(last).chain = block;
    }
    last = block;
  }
  THIMBLE_CHECK(placed == bytes, "S1: a window is not as long as its block");
  heap_->block(first).alias = id;
  Cached& cached = cache_[id];
  if (cached.references++ == 0) {
    idle_bytes_ -= aliases_->alias(id).bytes;
    active_bytes_ += aliases_->alias(id).bytes;
  }
  Unlink(id);
  LinkNewest(id);
  return {first, aliases_->address(id) + start};
}

void Stitcher::Remember(Bytes bytes, Window window) {
  if (last_window_.size() >= kMaxSizes) last_window_.clear();
  last_window_[bytes] = window;
}

void Stitcher::Release(BlockId first, StreamTag tag, Epoch epoch) {
  const AliasId id = heap_->block(first).alias;
  Cached& cached = cache_[id];
  if (--cached.references == 0) {
    active_bytes_ -= aliases_->alias(id).bytes;
    idle_bytes_ += aliases_->alias(id).bytes;
  }
  const auto use = std::find_if(cached.last_uses.begin(), cached.last_uses.end(),
                                [&](const LastUse& last) { return last.tag == tag; });
  if (use == cached.last_uses.end()) {
    cached.last_uses.push_back({tag, epoch});
  } else {
    use->epoch = epoch;
  }
  for (BlockId block = first; block != kNoBlock;) {
    const BlockId next = heap_->block(block).chain;
    heap_->Release(block, tag, epoch);
    block = next;
  }
}

// --- New aliases -------------------------------------------------------------------------------

std::vector<Extent> Stitcher::UsablePieces(StreamTag tag) const {
  // Scraps are not worth a seam, nor the time to look at them.
  const Bytes smallest = std::max(kUnit, home_->slot_bytes() / 32);
  std::vector<Extent> pieces;
  heap_->ForEachUsable(tag, smallest, [&](const Block& block) {
    pieces.push_back({block.offset, block.offset + block.bytes});
  });
  return pieces;
}

absl::StatusOr<Stitcher::Outcome> Stitcher::Build(Bytes bytes, StreamTag tag, Waste waste) {
  const Recipe recipe = Gather(*home_, UsablePieces(tag), bytes, waste);
  if (recipe.shortfall > 0) return Outcome{{}, recipe.shortfall};
  THIMBLE_ASSIGN_OR_RETURN(const AliasId id, aliases_->Build(recipe.runs));
  Enlist(id, recipe.repeats_chunk);
  THIMBLE_CHECK(CollectWindow(aliases_->alias(id), recipe.head_offset, bytes, tag),
                "S1: a new alias does not show what was gathered");
  if (!recipe.repeats_chunk) {
    Remember(bytes, {id, cache_[id].generation, recipe.head_offset});
  }
  const Placed placed = Place(id, recipe.head_offset, bytes);
  DropDown(kMaxMappings);
  return Outcome{placed, 0};
}

Bytes Stitcher::LargestStitch(StreamTag tag) const {
  return thimble::LargestStitch(*home_, UsablePieces(tag));
}

Bytes Stitcher::Shortfall(Bytes bytes, StreamTag tag) const {
  return Gather(*home_, UsablePieces(tag), bytes, Waste::kAny).shortfall;
}

// --- The cache ---------------------------------------------------------------------------------

void Stitcher::Enlist(AliasId id, bool repeats_chunk) {
  if (cache_.size() <= id) cache_.resize(id + 1);
  Cached& cached = cache_[id];
  cached.references = 0;
  ++cached.generation;
  cached.listed = true;
  cached.repeats_chunk = repeats_chunk;
  cached.last_uses.clear();
  LinkNewest(id);
  idle_bytes_ += aliases_->alias(id).bytes;
}

void Stitcher::LinkNewest(AliasId id) {
  cache_[id].older = newest_;
  cache_[id].newer = kNoAlias;
  (newest_ == kNoAlias ? oldest_ : cache_[newest_].newer) = id;
  newest_ = id;
}

void Stitcher::Unlink(AliasId id) {
  const Cached& cached = cache_[id];
  (cached.older == kNoAlias ? oldest_ : cache_[cached.older].newer) = cached.newer;
  (cached.newer == kNoAlias ? newest_ : cache_[cached.newer].older) = cached.older;
}

bool Stitcher::MayDrop(const Cached& cached) const {
  return cached.references == 0 &&
         std::all_of(cached.last_uses.begin(), cached.last_uses.end(),
                     [&](const LastUse& use) { return frontier_->passed(use.tag) >= use.epoch; });
}

// Drops the least recently used aliases until at most `max_mappings` are left. One that a stream
// may still use stays: it will have passed the next time.
void Stitcher::DropDown(std::uint64_t max_mappings) {
  if (aliases_->mappings() <= max_mappings) return;
  for (int tag = 1; tag <= frontier_->last_tag(); ++tag) {
    frontier_->Poll(static_cast<StreamTag>(tag)).IgnoreError();  // an error means: not passed
  }
  for (AliasId id = oldest_; id != kNoAlias && aliases_->mappings() > max_mappings;) {
    const AliasId newer = cache_[id].newer;
    if (MayDrop(cache_[id])) {
      idle_bytes_ -= aliases_->alias(id).bytes;
      Unlink(id);
      cache_[id].listed = false;
      aliases_->Drop(id);
    }
    id = newer;
  }
}

bool Stitcher::ShowsChain(BlockId first, Address address) const {
  const AliasId id = heap_->block(first).alias;
  const Alias& alias = aliases_->alias(id);
  Bytes position = address - aliases_->address(id);
  for (BlockId block = first; block != kNoBlock; block = heap_->block(block).chain) {
    Bytes begin = heap_->block(block).offset;
    const Bytes end = heap_->EndOf(block);
    Bytes run_start = 0;
    for (const Extent& run : alias.runs) {
      if (begin < end && position >= run_start && position < run_start + run.bytes()) {
        if (run.begin + (position - run_start) != begin) return false;
        const Bytes shown = std::min(end - begin, run_start + run.bytes() - position);
        begin += shown;
        position += shown;
      }
      run_start += run.bytes();
    }
    if (begin != end) return false;
  }
  return true;
}

void Stitcher::CheckInvariants() const {
  std::vector<std::uint32_t> references(cache_.size(), 0);
  for (BlockId id = heap_->first(); id != kNoBlock; id = heap_->block(id).next) {
    const Block& block = heap_->block(id);
    if (block.state == BlockState::kUsed && block.alias != kNoAlias) ++references[block.alias];
  }
  Bytes active = 0;
  Bytes idle = 0;
  std::size_t listed = 0;
  for (AliasId id = oldest_; id != kNoAlias; id = cache_[id].newer) {
    THIMBLE_CHECK(cache_[id].references == references[id], "S2: references miscounted");
    (references[id] > 0 ? active : idle) += aliases_->alias(id).bytes;
    ++listed;
  }
  const auto is_listed = [](const Cached& cached) { return cached.listed; };
  THIMBLE_CHECK(
      listed == static_cast<std::size_t>(std::count_if(cache_.begin(), cache_.end(), is_listed)),
      "S2: an alias is lost from the cache");
  THIMBLE_CHECK(active == active_bytes_ && idle == idle_bytes_, "S2: alias bytes miscounted");
}

}  // namespace thimble
