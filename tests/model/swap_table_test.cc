// Ten million random steps of the state machine of swap_state.h: blocks are made, used, exposed,
// freed, evicted and fetched in every order that callers may choose, copies end late or are
// cancelled. One number stands for the bytes of a block; it must be where the table says.
#include "allocator/swap/swap_table.h"

#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr std::uint64_t kGone = 0;  // content of memory that was never written
constexpr Bytes kBytes = 64 * kKiB;
constexpr StreamPoint kUsed{StreamId{1}, StreamSeq()};

class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      Step();
      if (i % 10000 == 0) table_.CheckInvariants();
    }
    EXPECT_GT(evictions_, steps / 100);
    EXPECT_GT(called_off_, steps / 1000);
  }

 private:
  struct Block {
    Address address;
    std::uint64_t contents = 0;
    std::uint64_t on_device = kGone;
    std::uint64_t on_host = kGone;
    int pins = 0;
    bool touched = false;
    bool exposed = false;
    bool evicting = false;  // a copy out is under way
    bool fetching = false;  // a copy in is
  };

  void Step() {
    if (blocks_.empty() || (blocks_.size() < 40 && random_.Index(8) == 0)) return Make();
    const std::size_t index = random_.Index(blocks_.size());
    Block& block = blocks_[index];
    switch (random_.Index(12)) {
      case 0:
        return EvictLast();
      case 1:
      case 2:
        return EndCopy(block);
      case 3:
        return block.pins == 0 ? Free(index) : Unpin(block);
      case 4:
        return random_.Index(64) == 0 ? Expose(block) : Use(block);
      case 5:
        return Unpin(block);
      case 6:
        return FetchFirst();
      default:
        return block.pins > 0 ? Unpin(block) : Use(block);
    }
  }

  void Make() {
    Block block;
    block.address = (next_ += kBytes);
    block.contents = block.on_device = ++contents_;
    table_.Add(block.address, {block.address, block.address + kBytes}, /*op=*/1 + random_.Index(9),
               /*step=*/contents_ / 100);
    blocks_.push_back(block);
    EXPECT_TRUE(table_.IsThere(IdOf(block)));
  }

  // As Swapper::Pin() does: a block that is leaving stays, one that is away comes back first.
  void Use(Block& block) {
    const SwapId id = IdOf(block);
    if (block.evicting && table_.block(id).state == SwapState::kEvicting) {
      table_.CancelEvict(id);
      ++called_off_;
    }
    const NextUse::Use use = table_.BeginOp(1 + random_.Index(9), contents_ / 100, /*count=*/1);
    table_.Pin(id, use);
    ++block.pins;
    if (block.evicting) EndCopy(block);
    if (table_.block(id).state == SwapState::kOnHost) BeginFetch(block);
    if (block.fetching) EndCopy(block);
    if (!table_.IsThere(id)) {  // there was no memory for it
      table_.Unpin(block.address);
      --block.pins;
      return;
    }
    EXPECT_EQ(block.on_device, block.contents) << "wrong bytes";
    if (random_.Index(2) == 0) block.contents = block.on_device = ++contents_;
  }

  void Unpin(Block& block) {
    EXPECT_EQ(table_.EndUse(block.address, kUsed), block.pins > 0);
    if (block.pins == 0) return;
    --block.pins;
    block.touched = true;
  }

  void Expose(Block& block) {
    Use(block);
    if (block.pins == 0) return;
    table_.Expose(IdOf(block));
    block.exposed = true;
    Unpin(block);
  }

  void Free(std::size_t index) {
    Block& block = blocks_[index];
    const SwapId id = IdOf(block);
    if (block.evicting && table_.block(id).state == SwapState::kEvicting) table_.CancelEvict(id);
    if (block.evicting || block.fetching) EndCopy(block);
    table_.Remove(id);
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  void EvictLast() {
    const SwapId id = table_.FarthestNextUse();
    if (id == kNoSwap) return;
    Block& block = BlockOf(id);
    EXPECT_TRUE(block.touched && block.pins == 0 && !block.exposed) << "it must stay";
    EXPECT_FALSE(block.evicting || block.fetching);
    table_.BeginEvict(id, &block);
    block.evicting = true;
  }

  void FetchFirst() {
    const SwapId id = table_.NearestNextUse();
    if (id != kNoSwap) BeginFetch(BlockOf(id));
  }

  void BeginFetch(Block& block) {
    table_.BeginFetch(IdOf(block));
    block.fetching = true;
  }

  // Ends the running copy; some copies fail.
  void EndCopy(Block& block) {
    const SwapId id = IdOf(block);
    const bool failed = random_.Index(16) == 0;
    if (block.evicting) {
      block.evicting = false;
      block.on_host = block.on_device;
      table_.EndCopy(id);
      const bool is_wanted = table_.block(id).state == SwapState::kEvicting;
      if (is_wanted && !failed) {
        table_.EndEvict(id);
        block.on_device = kGone;
        ++evictions_;
      } else {
        if (is_wanted) table_.CancelEvict(id);
        block.on_host = kGone;
      }
    } else if (block.fetching) {
      block.fetching = false;
      if (failed) return table_.CancelFetch(id);
      block.on_device = block.on_host;
      block.on_host = kGone;
      table_.EndFetch(id);
    }
  }

  SwapId IdOf(const Block& block) const {
    const SwapId id = table_.Find(block.address);
    EXPECT_NE(id, kNoSwap);
    return id;
  }
  Block& BlockOf(SwapId id) {
    for (Block& block : blocks_) {
      if (block.address == table_.block(id).address) return block;
    }
    ADD_FAILURE() << "no such block";
    return blocks_.front();
  }

  workloads::Random random_;
  SwapTable table_;
  std::vector<Block> blocks_;
  Address next_;
  std::uint64_t contents_ = 0;
  int evictions_ = 0;
  int called_off_ = 0;
};

TEST(SwapTable, BytesAreWhereItSaysAfterTenMillionRandomSteps) {
  Machine(/*seed=*/1).Run(10'000'000);
}

}  // namespace
}  // namespace thimble
