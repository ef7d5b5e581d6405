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

}  // namespace

OomReport ExplainOom(Space& space, const Request& request) {
  OomReport report;
  report.requested = request.bytes;
  report.in_use = space.heap().used_bytes() - space.absent_bytes();
  report.free = space.heap().free_bytes();
  report.reserved = space.reserved();
  report.limit = space.limit();
  report.largest_free = space.heap().LargestFree();
  report.stitch = space.stitch();
  report.largest_stitchable = report.largest_free;
  if (report.stitch) {
    report.largest_stitchable = std::max(report.largest_free, space.LargestStitch(request.stream));
  }
  report.missing = request.bytes - std::min(request.bytes, report.largest_stitchable);
  if (const auto info = space.driver().GetMemoryInfo(); info.ok()) {
    report.device_free = info->free_bytes;
  }
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
  for (BlockId id = heap.first(); id != kNoBlock; id = heap.block(id).next) {
    const auto head = chain_head.find(id);
    const BlockId first = head == chain_head.end() ? id : head->second;
    const Block& block = heap.block(id);
    Snapshot::Piece piece;
    piece.offset = block.offset;
    piece.bytes = block.bytes;
    piece.small = block.pool == Pool::kSmall;
    piece.stitched = heap.block(first).alias != kNoAlias && block.state == BlockState::kUsed;
    piece.owner = heap.block(first).offset;
    piece.key = heap.block(first).key;
    switch (block.state) {
      case BlockState::kUsed:
        piece.state = Snapshot::State::kUsed;
        break;
      case BlockState::kVacant:
        piece.state = Snapshot::State::kVacant;
        break;
      default:
        piece.state = Snapshot::State::kFree;
    }
    snapshot.pieces.push_back(piece);
  }
  return snapshot;
}

}  // namespace thimble
