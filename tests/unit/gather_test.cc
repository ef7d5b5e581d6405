// Gather: a recipe has only free bytes, whole chunks inside, and exactly the requested length.
#include "allocator/stitch/gather.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "tests/unit/device.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr Bytes kSlot = kGranule;
constexpr Bytes kSlots = 64;
constexpr Bytes kUnits = kSlots * kSlot / kUnit;

// Slots 16-23 and 40-47 are one large chunk each, all others chunks of one slot.
class GatherTest : public testing::Test {
 protected:
  GatherTest() : home_(HomeSpace::Create(device_.driver(), 4 * kSlots * kSlot, kSlot).value()) {
    for (Bytes slot = 0; slot < kSlots;) {
      const Bytes slots = slot == 16 || slot == 40 ? 8 : 1;
      EXPECT_TRUE(home_->Back(slot * kSlot, slots * kSlot, slots * kSlot).ok());
      slot += slots;
    }
  }

  // Pieces in quarters of a slot: {4, 8} is slot 1.
  static Extent Quarters(Bytes begin, Bytes end) { return {begin * kSlot / 4, end * kSlot / 4}; }
  Recipe Run(const std::vector<Extent>& pieces, Bytes quarters, Waste waste = Waste::kAny) {
    const Recipe recipe = Gather(*home_, pieces, quarters * kSlot / 4, waste);
    if (recipe.shortfall == 0) ExpectSound(recipe, pieces, quarters * kSlot / 4);
    return recipe;
  }

  // Checks unit by unit, independently of Gather: runs are whole chunks, the window shows exactly
  // the extents, and no unit is used twice or was not free.
  void ExpectSound(const Recipe& recipe, const std::vector<Extent>& pieces, Bytes bytes) {
    std::set<Bytes> free;
    for (const Extent& piece : pieces) {
      for (Bytes at = piece.begin; at < piece.end; at += kUnit) free.insert(at);
    }
    std::vector<Bytes> mapped;
    std::multiset<Bytes> chunks;
    for (const Extent& run : recipe.runs) {
      for (Bytes at = run.begin; at < run.end;) {
        const Chunk& chunk = home_->chunk(home_->ChunkAt(at));
        ASSERT_EQ(chunk.offset, at) << "a run begins inside a chunk";
        chunks.insert(at);
        for (Bytes unit = at; unit < at + chunk.bytes; unit += kUnit) mapped.push_back(unit);
        at += chunk.bytes;
        ASSERT_LE(at, run.end) << "a run ends inside a chunk";
      }
    }
    std::vector<Bytes> block;
    for (const Extent& extent : recipe.extents) {
      for (Bytes at = extent.begin; at < extent.end; at += kUnit) {
        ASSERT_EQ(free.erase(at), 1u) << "byte " << at << " is not free, or used twice";
        block.push_back(at);
      }
    }
    ASSERT_EQ(block.size() * kUnit, bytes);
    const std::size_t head = recipe.head_offset / kUnit;
    ASSERT_LE(head + block.size(), mapped.size());
    ASSERT_TRUE(std::equal(block.begin(), block.end(), mapped.begin() + head));
    const bool repeats = std::any_of(chunks.begin(), chunks.end(),
                                     [&](Bytes chunk) { return chunks.count(chunk) > 1; });
    ASSERT_EQ(recipe.repeats_chunk, repeats);
  }

  Device device_;
  std::unique_ptr<HomeSpace> home_;
};

TEST_F(GatherTest, WholeChunksAreJoined) {
  const Recipe recipe = Run({Quarters(0, 4), Quarters(8, 12), Quarters(20, 28)}, 12);
  EXPECT_EQ(recipe.shortfall, 0u);
  EXPECT_EQ(recipe.head_offset, 0u);
}

TEST_F(GatherTest, AHeadAndATailCompleteWholeChunks) {
  // The end of chunk 0, chunk 2, the beginning of chunk 5.
  const Recipe recipe = Run({Quarters(2, 4), Quarters(8, 12), Quarters(20, 23)}, 9);
  EXPECT_EQ(recipe.shortfall, 0u);
  EXPECT_EQ(recipe.extents.size(), 3u);
  EXPECT_EQ(recipe.head_offset, kSlot / 2);
  EXPECT_FALSE(recipe.repeats_chunk);
}

TEST_F(GatherTest, HeadAndTailMayBeTwoEndsOfTheSameChunk) {
  const Recipe recipe = Run({Quarters(0, 1), Quarters(3, 4)}, 2);
  EXPECT_EQ(recipe.shortfall, 0u);
  EXPECT_TRUE(recipe.repeats_chunk);
  EXPECT_EQ(recipe.runs.size(), 2u);
}

TEST_F(GatherTest, TheMiddleOfAChunkCannotBeUsed) {
  const Recipe recipe = Run({Quarters(1, 3), Quarters(5, 7)}, 2);
  EXPECT_EQ(recipe.shortfall, kSlot);
}

TEST_F(GatherTest, ALargeChunkIsUsedWholeOrAtItsEnds) {
  EXPECT_EQ(Run({Quarters(64, 96), Quarters(0, 4)}, 36).shortfall, 0u);
  EXPECT_EQ(Run({Quarters(68, 92)}, 4).shortfall, kSlot) << "the middle of a large chunk";
  EXPECT_EQ(Run({Quarters(80, 96), Quarters(160, 170)}, 26).shortfall, 0u);
}

TEST_F(GatherTest, TheShortfallIsWhatIsMissingInWholeChunks) {
  EXPECT_EQ(Run({}, 1).shortfall, kSlot);
  EXPECT_EQ(Run({Quarters(0, 4)}, 12).shortfall, 2 * kSlot);
  EXPECT_EQ(Run({Quarters(0, 4)}, 13).shortfall, 3 * kSlot);
  EXPECT_EQ(Run({Quarters(0, 4), Quarters(9, 12)}, 13).shortfall, 2 * kSlot)
      << "the rest of a quarter comes from the end of chunk 2";
}

TEST_F(GatherTest, EndsAreUsedBeforeAWholeChunkIsBrokenUp) {
  // Slots 0 and 1 are whole; 1 1/4 slots are wanted.
  EXPECT_EQ(Run({Quarters(0, 8), Quarters(16, 17)}, 5).runs.back().begin, 4 * kSlot) << "one end";
  const Recipe two = Run({Quarters(0, 8), Quarters(15, 16), Quarters(20, 21)}, 6);
  EXPECT_EQ(two.head_offset, kSlot * 3 / 4) << "two ends";
  EXPECT_EQ(two.runs.back().begin, 5 * kSlot);
  EXPECT_EQ(Run({Quarters(0, 8), Quarters(17, 19)}, 5).runs.back().end, 2 * kSlot) << "no end";
}

TEST_F(GatherTest, AnEndThatWouldWasteMuchIsTheLastResort) {
  // A quarter of a slot is wanted beside one whole slot; half of one is free at the end of slot 2.
  EXPECT_EQ(Run({Quarters(0, 8), Quarters(10, 12)}, 5).runs.back().end, 2 * kSlot)
      << "a whole chunk is broken up instead";
  const std::vector<Extent> pieces = {Quarters(0, 4), Quarters(10, 12)};
  EXPECT_EQ(Run(pieces, 5, Waste::kLittle).shortfall, kSlot) << "or a new one is asked for";
  EXPECT_EQ(Run(pieces, 5, Waste::kAny).head_offset, kSlot * 3 / 4);
}

TEST_F(GatherTest, RandomPiecesGiveSoundRecipes) {
  workloads::Random random(17);
  int built = 0;
  int short_of = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Extent> pieces;
    const Bytes density = 1 + random.Index(20);
    for (Bytes at = random.Index(8); at < kUnits;) {
      const Bytes units = std::min(kUnits - at, 1 + random.LogUniform(1, 8 * kSlot / kUnit));
      if (random.Index(20) < density) pieces.push_back({at * kUnit, (at + units) * kUnit});
      at += units + 1;  // never two neighbours: those would be one piece
    }
    const Bytes bytes = kUnit * random.LogUniform(1, kUnits / 2);
    const auto waste = random.Index(2) == 0 ? Waste::kLittle : Waste::kAny;
    const Recipe recipe = Gather(*home_, pieces, bytes, waste);
    const Bytes largest = LargestStitch(*home_, pieces);
    if (recipe.shortfall == 0) {
      ++built;
      ASSERT_NO_FATAL_FAILURE(ExpectSound(recipe, pieces, bytes));
      ASSERT_LE(bytes, largest);
    } else {
      ++short_of;
      // With so much more at the end, there is enough.
      ASSERT_EQ(recipe.shortfall % kSlot, 0u);
      ASSERT_TRUE(home_->Back(kSlots * kSlot, recipe.shortfall, kSlot).ok());
      pieces.push_back({kSlots * kSlot, kSlots * kSlot + recipe.shortfall});
      const Recipe second = Gather(*home_, pieces, bytes, Waste::kAny);
      ASSERT_EQ(second.shortfall, 0u) << "round " << round;
      ASSERT_NO_FATAL_FAILURE(ExpectSound(second, pieces, bytes));
      for (Bytes at = kSlots * kSlot; at < pieces.back().end; at += kSlot) {
        ASSERT_TRUE(home_->Vacate(home_->ChunkAt(at)).ok());
      }
      pieces.pop_back();
    }
    if (largest > 0) {
      ASSERT_EQ(Gather(*home_, pieces, largest, Waste::kAny).shortfall, 0u) << "round " << round;
      ASSERT_GT(Gather(*home_, pieces, largest + kUnit, Waste::kAny).shortfall, 0u);
    }
  }
  EXPECT_GT(built, 500);
  EXPECT_GT(short_of, 300);
}

}  // namespace
}  // namespace thimble
