// ShadowTable alone: what it records, when entries end, and how it counts areas (T1-T4).
// tests/conformance proves on whole drivers that it keeps the rules R1-R8.
#include <vector>

#include "allocator/driver/shadow_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {

// Found by gtest's printers and matchers.
bool operator==(const FileRange& a, const FileRange& b) {
  return a.offset == b.offset && a.bytes == b.bytes;
}
bool operator==(const AddressRange& a, const AddressRange& b) {
  return a.begin == b.begin && a.end == b.end;
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

constexpr Bytes kGranule = 16;
constexpr Address kBase{0x1000};

class ShadowTableTest : public testing::Test {
 protected:
  ShadowTableTest() { table_.AddReservation({kBase, kBase + 10 * kGranule}); }
  ~ShadowTableTest() override { table_.CheckInvariants(); }

  static AddressRange Range(Address address, Bytes bytes) { return {address, address + bytes}; }
  static Address Slot(int slot) { return kBase + slot * kGranule; }
  // A chunk of one granule at an offset counted in granules.
  ChunkHandle Chunk(int offset) { return table_.AddChunk({offset * kGranule, kGranule}); }
  void Map(int slot, ChunkHandle chunk) {
    ASSERT_TRUE(table_.Map(Range(Slot(slot), kGranule), chunk).ok());
    table_.CheckInvariants();
  }
  void Open(int slot, int count) {
    ASSERT_TRUE(table_.GrantAccess(Range(Slot(slot), count * kGranule)).ok());
    table_.CheckInvariants();
  }

  ShadowTable table_{kGranule};
};

TEST_F(ShadowTableTest, VacantAddressesAreOneArea) { EXPECT_EQ(table_.areas(), 1u); }

TEST_F(ShadowTableTest, MappingSplitsVacantAddresses) {
  Map(4, Chunk(0));
  EXPECT_EQ(table_.areas(), 3u);
  Map(0, Chunk(1));
  EXPECT_EQ(table_.areas(), 4u) << "nothing is to the left of the first slot";
  Map(9, Chunk(2));
  EXPECT_EQ(table_.areas(), 5u);
}

TEST_F(ShadowTableTest, NeighboursInAddressAndFileShareAnArea) {
  Map(4, Chunk(7));
  Map(5, Chunk(8));
  Map(3, Chunk(6));
  EXPECT_EQ(table_.areas(), 3u);
  Map(6, Chunk(20));
  EXPECT_EQ(table_.areas(), 4u) << "not neighbours in the file";
}

TEST_F(ShadowTableTest, AccessSplitsAreas) {
  for (int slot = 2; slot < 6; ++slot) Map(slot, Chunk(slot));
  EXPECT_EQ(table_.areas(), 3u);
  Open(3, 1);
  EXPECT_EQ(table_.areas(), 5u);
  Open(2, 4);
  EXPECT_EQ(table_.areas(), 3u);
}

TEST_F(ShadowTableTest, UnmapInTheMiddleNeedsTwoMore) {
  for (int slot = 0; slot < 10; ++slot) Map(slot, Chunk(slot));
  EXPECT_EQ(table_.areas(), 1u);
  table_.Unmap(Slot(5));
  EXPECT_EQ(table_.areas(), 3u);
  table_.Unmap(Slot(4));
  EXPECT_EQ(table_.areas(), 3u);
  table_.Unmap(Slot(9));
  EXPECT_EQ(table_.areas(), 4u);
}

TEST_F(ShadowTableTest, ReservationsNeverShareAnArea) {
  table_.AddReservation(Range(Slot(10), 2 * kGranule));
  Map(9, Chunk(0));
  Map(10, Chunk(1));
  EXPECT_EQ(table_.areas(), 4u);
  EXPECT_THAT(table_.Reservations(),
              ElementsAre(Range(kBase, 10 * kGranule), Range(Slot(10), 2 * kGranule)));
  EXPECT_FALSE(table_.GrantAccess(Range(Slot(9), 2 * kGranule)).ok());
}

TEST_F(ShadowTableTest, AForkFreezesWhatIsThere) {
  const ChunkHandle first = Chunk(0);
  Map(2, first);
  Map(3, Chunk(1));
  Map(7, Chunk(5));
  const ChunkHandle unmapped = Chunk(9);
  const std::vector<Window> changed = table_.Freeze();
  ASSERT_EQ(changed.size(), 2u);  // neighbours in one
  EXPECT_EQ(changed[0].address, Slot(2));
  EXPECT_EQ(changed[0].file, (FileRange{0, 2 * kGranule}));
  EXPECT_EQ(changed[1].file, (FileRange{5 * kGranule, kGranule}));
  table_.CheckInvariants();
  EXPECT_TRUE(table_.Freeze().empty());
  // New chunks behave as before, and share no area with a frozen neighbour.
  const std::uint64_t areas = table_.areas();
  EXPECT_FALSE(table_.Map(Range(Slot(4), kGranule), Chunk(2))->is_private);
  EXPECT_EQ(table_.areas(), areas + 1);
  EXPECT_TRUE(table_.Map(Range(Slot(9), kGranule), unmapped)->is_private);
  table_.CheckInvariants();
  // Without children, unmapped chunks thaw.
  table_.Unmap(Slot(9));
  table_.Thaw();
  EXPECT_TRUE(table_.has_frozen());
  EXPECT_FALSE(table_.Map(Range(Slot(9), kGranule), unmapped)->is_private);
  table_.Unmap(Slot(2));
  const auto dead = table_.RemoveChunk(first).value();
  ASSERT_TRUE(dead.has_value());
  EXPECT_TRUE(dead->frozen);
  table_.CheckInvariants();
}

TEST_F(ShadowTableTest, AFileRangeDiesWithItsLastReference) {
  const ChunkHandle chunk = Chunk(3);
  const ChunkHandle shared = table_.ShareChunk(chunk).value();
  Map(0, chunk);
  Map(5, shared);
  EXPECT_EQ(table_.RemoveChunk(chunk).value(), std::nullopt);
  EXPECT_EQ(table_.Unmap(Slot(0)), std::nullopt);
  EXPECT_EQ(table_.RemoveChunk(shared).value(), std::nullopt);
  const std::optional<DeadRange> dead = table_.Unmap(Slot(5));
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(dead->file, (FileRange{3 * kGranule, kGranule}));
  EXPECT_FALSE(dead->frozen);
  EXPECT_NE(Chunk(3), chunk) << "the range is used again, the handle never";
}

TEST_F(ShadowTableTest, GrantAccessReturnsTheMappingsWithoutAccess) {
  for (int slot = 0; slot < 4; ++slot) Map(slot, Chunk(slot * 2));
  Open(1, 1);
  const auto granted = table_.GrantAccess(Range(Slot(0), 4 * kGranule));
  ASSERT_TRUE(granted.ok());
  EXPECT_THAT(*granted, ElementsAre(Range(Slot(0), kGranule), Range(Slot(2), kGranule),
                                    Range(Slot(3), kGranule)));
  table_.RevokeAccess(*granted);
  EXPECT_TRUE(table_.Translate(Range(Slot(1), kGranule), /*need_access=*/true).ok());
  EXPECT_FALSE(table_.Translate(Range(Slot(0), 1), /*need_access=*/true).ok());
  EXPECT_FALSE(table_.Translate(Range(Slot(2), 1), /*need_access=*/true).ok());
}

TEST_F(ShadowTableTest, TranslateFindsAnyByteAndJoinsNeighbours) {
  Map(0, Chunk(4));
  Map(1, Chunk(5));
  Map(2, Chunk(1));
  const auto parts = table_.Translate(Range(kBase + 3, 2 * kGranule), /*need_access=*/false);
  ASSERT_TRUE(parts.ok());
  EXPECT_THAT(*parts, ElementsAre(FileRange{4 * kGranule + 3, 2 * kGranule - 3},
                                  FileRange{1 * kGranule, 3}));
  EXPECT_FALSE(table_.Translate(Range(Slot(2), kGranule + 1), /*need_access=*/false).ok());
  EXPECT_FALSE(table_.Translate(Range(Slot(0), 0), /*need_access=*/false).ok());
  EXPECT_FALSE(table_.Translate(Range(Address(~std::uint64_t{0}), 2), /*need_access=*/false).ok());
}

TEST_F(ShadowTableTest, ErrorsNameTheRuleAndThePlace) {
  const auto words = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_THAT(words(table_.CheckSize(17)), HasSubstr("R5: 17 bytes"));
  EXPECT_THAT(words(table_.CheckRelease(Range(kBase, kGranule))), HasSubstr("R6: 0x1000"));
  EXPECT_THAT(words(table_.CheckUnmap(Range(Slot(1), kGranule))), HasSubstr("R3: no mapping"));
  EXPECT_THAT(words(table_.Map(Range(Address(0x2000), kGranule), Chunk(0)).status()),
              HasSubstr("R2: 0x2000"));
  EXPECT_THAT(words(table_.RemoveChunk(ChunkHandle{99}).status()), HasSubstr("chunk 99"));
}

TEST_F(ShadowTableTest, CallersMistakesStopTheProcess) {
  EXPECT_DEATH(table_.AddReservation(Range(Slot(9), 4 * kGranule)), "T1");
  EXPECT_DEATH(table_.RemoveReservation(Slot(1)), "T1");
  EXPECT_DEATH(table_.Unmap(Slot(1)), "T1");
  Chunk(0);
  EXPECT_DEATH(Chunk(0), "T2");
}

}  // namespace
}  // namespace thimble
