// Builds blocks from free memory that is not contiguous, and remembers how.
//
// A stitched block is a chain of home extents (heap.h) seen through a window of an alias
// (alias_space.h). Freeing it returns the extents home and leaves the alias cached. The work of
// training repeats itself, so the next stitch usually finds a cached window whose bytes are all
// free and costs no driver call.
//
// Invariants (CheckInvariants() and ShowsChain() prove them):
//   S1  The extents of a chain, laid end to end, are what its window of the alias maps.
//   S2  references of an alias = chains that are seen through it; only an alias without any is
//       dropped, and only when every stream that used it has passed its last free.
//   S3  An alias that maps a chunk twice serves the one block it was made for and no other.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "allocator/stitch/block.h"
#include "allocator/stitch/frontier.h"
#include "allocator/stitch/gather.h"
#include "allocator/stitch/heap.h"
#include "allocator/vmm/alias_space.h"
#include "allocator/vmm/home_space.h"

namespace thimble {

// A block and where callers see it.
struct Placed {
  BlockId block = kNoBlock;
  Address address;
};

class Stitcher {
 public:
  // Cached aliases are dropped, least recently used first, above so many mappings.
  static constexpr std::uint64_t kMaxMappings = 16384;

  // All must outlive the stitcher.
  Stitcher(Heap* heap, HomeSpace* home, AliasSpace* aliases, Frontier* frontier);

  // A window of a cached alias. No driver call; nothing if none fits.
  std::optional<Placed> TakeCached(Bytes bytes, StreamTag tag);

  struct Outcome {
    Placed placed;        // block is kNoBlock if there was not enough
    Bytes shortfall = 0;  // then: whole chunks of so many bytes would have been enough
  };
  // A new alias over what is free now.
  absl::StatusOr<Outcome> Build(Bytes bytes, StreamTag tag, Waste waste);

  // A chain that was placed here is free again.
  void Release(BlockId first, StreamTag tag, Epoch epoch);

  // Drops every alias that nobody uses and that all streams have passed.
  void DropIdle() { DropDown(0); }

  // The largest block Build() could make for `tag`.
  Bytes LargestStitch(StreamTag tag) const;
  // With so many bytes of whole chunks more, Build() could make one of `bytes`.
  Bytes Shortfall(Bytes bytes, StreamTag tag) const;

  Bytes active_bytes() const { return active_bytes_; }  // addresses of aliases in use
  Bytes idle_bytes() const { return idle_bytes_; }      // addresses of cached ones

  // S1 for one chain: its window begins at `address` and maps exactly its extents.
  bool ShowsChain(BlockId first, Address address) const;
  void CheckInvariants() const;  // O(blocks)

 private:
  struct LastUse {
    StreamTag tag;
    Epoch epoch;
  };
  struct Cached {  // what the cache knows about an alias; indexed by AliasId
    std::uint32_t references = 0;
    std::uint32_t generation = 0;  // counts the aliases that had this id
    bool listed = false;
    bool repeats_chunk = false;  // S3
    AliasId older = kNoAlias;    // neighbours in the order of use
    AliasId newer = kNoAlias;
    std::vector<LastUse> last_uses;
  };
  struct Window {
    AliasId alias = kNoAlias;
    std::uint32_t generation = 0;
    Bytes start = 0;
  };

  static constexpr int kCandidates = 64;           // cached aliases looked at for one request
  static constexpr int kBlocksPerCandidate = 256;  // blocks looked at in one of them
  static constexpr std::size_t kMaxSizes = 65536;

  bool CollectWindow(const Alias& alias, Bytes start, Bytes bytes, StreamTag tag);
  std::optional<Bytes> FindWindow(const Alias& alias, Bytes bytes, StreamTag tag) const;
  Placed Place(AliasId id, Bytes start, Bytes bytes);
  void Remember(Bytes bytes, Window window);

  std::vector<Extent> UsablePieces(StreamTag tag) const;
  void Enlist(AliasId id, bool repeats_chunk);
  void LinkNewest(AliasId id);
  void Unlink(AliasId id);
  void DropDown(std::uint64_t max_mappings);
  bool MayDrop(const Cached& cached) const;

  Heap* const heap_;
  HomeSpace* const home_;
  AliasSpace* const aliases_;
  Frontier* const frontier_;
  std::vector<Cached> cache_;
  AliasId oldest_ = kNoAlias;
  AliasId newest_ = kNoAlias;
  absl::flat_hash_map<Bytes, Window> last_window_;  // where a block of this size was seen last
  std::vector<Extent> extents_;                     // of the window under consideration
  Bytes active_bytes_ = 0;
  Bytes idle_bytes_ = 0;
};

}  // namespace thimble
