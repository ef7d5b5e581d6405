#include "allocator/arena/explain.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace thimble {
namespace {

std::vector<OomReport::Holder> TopHolders(const Space& space) {
  absl::flat_hash_map<std::pair<std::uint64_t, Bytes>, OomReport::Holder> found;
  space.pointers().ForEach([&](Address, BlockId id) {
    const Block& block = space.heap().block(id);
    if (block.absent) return;  // it holds the host's memory
    const Bytes bytes = space.BytesOf(block);
    OomReport::Holder& holder = found[{block.key, block.key == 0 ? bytes : 0}];
    holder.key = block.key;
    holder.bytes += bytes;
    ++holder.blocks;
  });
  std::vector<OomReport::Holder> holders;
  for (const auto& [key, holder] : found) holders.push_back(holder);
  std::sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) {
    return std::tie(b.bytes, a.key, a.blocks) < std::tie(a.bytes, b.key, b.blocks);
  });
  if (holders.size() > OomReport::kMaxHolders) holders.resize(OomReport::kMaxHolders);
  return holders;
}

// What the request lacks, and which settings would have given it that: tried on what is free, where
// the request would be placed with them.
void FindFits(Space& space, const Request& request, OomReport* report) {
  using Placing = Space::Placing;
  const Bytes backed = space.home().backed_bytes();
  const Bytes allowed = report->limit - std::min(report->limit, backed);
  const Bytes growable = std::min(allowed, report->device_free);
  report->shortfall = request.bytes;
  if (request.bytes <= report->device_total) {
    const Placing placing = report->stitch ? Placing::kStitched : Placing::kWhole;
    report->shortfall = space.Shortfall(request, report->swap.on ? Placing::kMoved : placing);
    report->fits_stitch = !report->stitch && !report->swap.on &&
                          space.Shortfall(request, Placing::kStitched) <= growable;
  }
  report->missing = report->shortfall - std::min(report->shortfall, growable);
  if (report->shortfall > allowed && report->shortfall <= report->device_free) {
    report->fits_limit = backed + report->shortfall;
  }
}

}  // namespace

OomReport ExplainOom(Space& space, const Swapper* swapper, const Request& request) {
  OomReport report;
  report.requested = request.bytes;
  report.in_use = space.heap().used_bytes() - space.absent_bytes();
  report.free = space.heap().free_bytes();
  report.reserved = space.reserved();
  report.limit = space.limit();
  report.largest_free = space.heap().LargestFree();
  report.stitch = space.stitch();
  report.plan = space.plan();
  report.largest_stitchable = std::max(report.largest_free, space.LargestStitch(request.stream));
  report.device_total = space.driver().properties().total_bytes;
  if (const auto info = space.driver().GetMemoryInfo(); info.ok()) {
    report.device_told = true;
    report.device_free = info->free_bytes;
    report.held_outside =
        report.device_total - std::min(report.device_total, report.device_free + report.reserved);
  }
  if (swapper != nullptr) report.swap = swapper->Outlook(request);
  FindFits(space, request, &report);
  report.holders = TopHolders(space);
  report.kind = KindOf(report);
  return report;
}

Snapshot TakeSnapshot(const Space& space) {
  Snapshot snapshot;
  snapshot.home_base = space.home().base();
  snapshot.chunk_bytes = space.home().slot_bytes();
  const Heap& heap = space.heap();
  absl::flat_hash_map<BlockId, BlockId> chain_head;
  for (BlockId id = heap.first(); id != kNoBlock; id = heap.block(id).next) {
    for (BlockId next = heap.block(id).chain; heap.block(id).alias != kNoAlias && next != kNoBlock;
         next = heap.block(next).chain) {
      chain_head.emplace(next, id);
    }
  }
  for (const Space::Piece& seen : space.Pieces()) {
    Snapshot::Piece piece;
    piece.offset = piece.owner = seen.extent.begin;
    piece.bytes = seen.extent.bytes();
    piece.small = seen.pool == Pool::kSmall;
    piece.key = seen.key;
    if (seen.state == BlockState::kVacant) piece.state = Snapshot::State::kVacant;
    if (seen.state == BlockState::kUsed) piece.state = Snapshot::State::kUsed;
    if (seen.id != kNoBlock) {
      const auto head = chain_head.find(seen.id);
      const Block& first = heap.block(head == chain_head.end() ? seen.id : head->second);
      piece.stitched = first.alias != kNoAlias && seen.state == BlockState::kUsed;
      piece.owner = first.offset;
      piece.key = first.key;
    }
    snapshot.pieces.push_back(piece);
  }
  return snapshot;
}

}  // namespace thimble
