// The contract of driver.h, rule by rule: legal calls work, illegal calls are refused and change
// nothing. Runs on every driver.
#include <array>

#include "tests/conformance/subject.h"

namespace thimble {
namespace {

class DriverRules : public DriverConformance {};

INSTANTIATE_TEST_SUITE_P(All, DriverRules, testing::ValuesIn(AllSubjects()), SubjectName);

TEST_P(DriverRules, PropertiesMakeSense) {
  const DriverProperties& properties = driver_.properties();
  EXPECT_FALSE(properties.name.empty());
  EXPECT_TRUE(IsPowerOfTwo(properties.granularity));
  EXPECT_EQ(properties.total_bytes, kSubjectGranules * granule_);
  EXPECT_EQ(FreeBytes(), properties.total_bytes);
}

// ---- R1: a chunk is mapped whole and from its start.

TEST_P(DriverRules, R1_ChunkOfManyGranulesIsMappedWhole) {
  const Address base = Reserve(4);
  const ChunkHandle chunk = Create(3);
  EXPECT_TRUE(Succeeds(driver_.Map(base + granule_, 3 * granule_, chunk)));
}

TEST_P(DriverRules, R1_PartOfAChunkIsRefused) {
  const Address base = Reserve(4);
  const ChunkHandle chunk = Create(3);
  EXPECT_TRUE(IsRefused(driver_.Map(base, 2 * granule_, chunk)));
  EXPECT_TRUE(Succeeds(driver_.Map(base, 3 * granule_, chunk))) << "the refusal left a trace";
}

TEST_P(DriverRules, R1_MoreThanAChunkIsRefused) {
  const Address base = Reserve(4);
  EXPECT_TRUE(IsRefused(driver_.Map(base, 4 * granule_, Create(3))));
}

// ---- R2: map only onto reserved addresses where nothing is mapped now.

TEST_P(DriverRules, R2_EveryPlaceOfAReservationCanBeMappedInAnyOrder) {
  const Address base = Reserve(5);
  for (const Bytes slot : {2, 0, 4, 1, 3}) {
    EXPECT_TRUE(Succeeds(Map(base + slot * granule_, Create())));
  }
}

TEST_P(DriverRules, R2_MappingOverAMappingIsRefused) {
  const Address base = Reserve(6);
  ASSERT_TRUE(Succeeds(driver_.Map(base + 2 * granule_, 2 * granule_, Create(2))));
  EXPECT_TRUE(IsRefused(Map(base + 2 * granule_, Create())));
  EXPECT_TRUE(IsRefused(Map(base + 3 * granule_, Create())));
  EXPECT_TRUE(IsRefused(driver_.Map(base + granule_, 2 * granule_, Create(2))));
  EXPECT_TRUE(IsRefused(driver_.Map(base + 3 * granule_, 2 * granule_, Create(2))));
  EXPECT_TRUE(IsRefused(driver_.Map(base + granule_, 4 * granule_, Create(4))));
  EXPECT_TRUE(Succeeds(driver_.Map(base, 2 * granule_, Create(2))));
  EXPECT_TRUE(Succeeds(driver_.Map(base + 4 * granule_, 2 * granule_, Create(2))));
}

TEST_P(DriverRules, R2_MappingOutsideOfReservationsIsRefused) {
  const Address base = Reserve(2);
  const ChunkHandle chunk = Create(2);
  EXPECT_TRUE(IsRefused(driver_.Map(base + granule_, 2 * granule_, chunk)));
  EXPECT_TRUE(IsRefused(driver_.Map(base - granule_, 2 * granule_, chunk)));
  ASSERT_TRUE(Succeeds(driver_.Release(base, 2 * granule_)));
  EXPECT_TRUE(IsRefused(driver_.Map(base, 2 * granule_, chunk)));
  EXPECT_TRUE(IsRefused(driver_.Map(Address(), 2 * granule_, chunk)));
}

TEST_P(DriverRules, R2_PlaceCanBeMappedAgainAfterUnmap) {
  const Address base = Reserve(1);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(Succeeds(Map(base, Create())));
    ASSERT_TRUE(Succeeds(Unmap(base)));
  }
}

TEST_P(DriverRules, R2_ChunkThatDoesNotExistIsRefused) {
  const Address base = Reserve(1);
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
  EXPECT_TRUE(IsRefused(Map(base, chunk)));
  EXPECT_TRUE(IsRefused(driver_.Destroy(chunk)));
}

// ---- R3: Unmap takes exactly one mapping, never a part and never two.

TEST_P(DriverRules, R3_PartOfAMappingIsRefused) {
  const Address base = Reserve(3);
  ASSERT_TRUE(Succeeds(driver_.Map(base, 3 * granule_, Create(3))));
  EXPECT_TRUE(IsRefused(Unmap(base)));
  EXPECT_TRUE(IsRefused(Unmap(base + granule_)));
  EXPECT_TRUE(IsRefused(driver_.Unmap(base + granule_, 2 * granule_)));
  EXPECT_TRUE(Succeeds(driver_.Unmap(base, 3 * granule_)));
}

TEST_P(DriverRules, R3_TwoMappingsAtOnceAreRefused) {
  const Address base = Reserve(2);
  ASSERT_TRUE(Succeeds(Map(base, Create())));
  ASSERT_TRUE(Succeeds(Map(base + granule_, Create())));
  EXPECT_TRUE(IsRefused(driver_.Unmap(base, 2 * granule_)));
  EXPECT_TRUE(Succeeds(Unmap(base)));
  EXPECT_TRUE(Succeeds(Unmap(base + granule_)));
}

TEST_P(DriverRules, R3_NothingToUnmapIsRefused) {
  const Address base = Reserve(1);
  EXPECT_TRUE(IsRefused(Unmap(base)));
  ASSERT_TRUE(Succeeds(Map(base, Create())));
  ASSERT_TRUE(Succeeds(Unmap(base)));
  EXPECT_TRUE(IsRefused(Unmap(base)));
}

// ---- R4: no access until SetAccess, which needs a fully mapped range.

TEST_P(DriverRules, R4_NewMappingHasNoAccess) {
  const Address base = Reserve(1);
  ASSERT_TRUE(Succeeds(Map(base, Create())));
  std::uint8_t byte = 0;
  EXPECT_FALSE(driver_.Copy(base, &byte, 1, CopyDirection::kToDevice).ok());
  EXPECT_FALSE(driver_.Copy(base, &byte, 1, CopyDirection::kToHost).ok());
  EXPECT_DEATH(Touch(base), "");
}

TEST_P(DriverRules, R4_OneCallOpensManyMappings) {
  const Address base = Reserve(4);
  for (Bytes slot = 0; slot < 4; ++slot) {
    ASSERT_TRUE(Succeeds(Map(base + slot * granule_, Create())));
  }
  ASSERT_TRUE(Succeeds(driver_.SetAccess(base, 4 * granule_)));
  for (Bytes slot = 0; slot < 4; ++slot) Poke(base + slot * granule_, 1);
  EXPECT_TRUE(Succeeds(driver_.SetAccess(base, 4 * granule_))) << "again";
}

TEST_P(DriverRules, R4_HoleInTheRangeIsRefusedAndOpensNothing) {
  const Address base = Reserve(3);
  ASSERT_TRUE(Succeeds(Map(base, Create())));
  ASSERT_TRUE(Succeeds(Map(base + 2 * granule_, Create())));
  EXPECT_TRUE(IsRefused(driver_.SetAccess(base, 3 * granule_)));
  std::uint8_t byte = 0;
  EXPECT_FALSE(driver_.Copy(base, &byte, 1, CopyDirection::kToDevice).ok());
}

TEST_P(DriverRules, R4_PartOfAMappingIsRefused) {
  const Address base = Reserve(3);
  ASSERT_TRUE(Succeeds(driver_.Map(base, 3 * granule_, Create(3))));
  EXPECT_TRUE(IsRefused(SetAccess(base)));
  EXPECT_TRUE(IsRefused(driver_.SetAccess(base + granule_, 2 * granule_)));
  EXPECT_TRUE(Succeeds(driver_.SetAccess(base, 3 * granule_)));
}

TEST_P(DriverRules, R4_AccessEndsWithTheMapping) {
  const Address base = Reserve(1);
  Back(base);
  Poke(base, 1);
  ASSERT_TRUE(Succeeds(Unmap(base)));
  EXPECT_TRUE(IsRefused(SetAccess(base)));
  EXPECT_DEATH(Touch(base), "");
  ASSERT_TRUE(Succeeds(Map(base, Create())));
  EXPECT_DEATH(Touch(base), "") << "a second mapping inherited the access of the first";
}

// ---- R5: addresses and sizes are positive multiples of granularity.

TEST_P(DriverRules, R5_OddSizesAreRefused) {
  const Address base = Reserve(4);
  const ChunkHandle chunk = Create();
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, granule_ - 1, granule_ + 1}) {
    EXPECT_TRUE(IsRefused(driver_.Reserve(bytes, granule_))) << bytes;
    EXPECT_TRUE(IsRefused(driver_.Create(bytes))) << bytes;
    EXPECT_TRUE(IsRefused(driver_.Map(base, bytes, chunk))) << bytes;
    EXPECT_TRUE(IsRefused(driver_.Unmap(base, bytes))) << bytes;
    EXPECT_TRUE(IsRefused(driver_.SetAccess(base, bytes))) << bytes;
    EXPECT_TRUE(IsRefused(driver_.Release(base, bytes))) << bytes;
  }
}

TEST_P(DriverRules, R5_OddAddressesAreRefused) {
  const Address base = Reserve(4);
  const ChunkHandle chunk = Create();
  for (const Address odd : {base + 1, base + granule_ - 1, base + granule_ / 2}) {
    EXPECT_TRUE(IsRefused(Map(odd, chunk)));
  }
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  EXPECT_TRUE(IsRefused(SetAccess(base + 1)));
  EXPECT_TRUE(IsRefused(Unmap(base + 1)));
}

TEST_P(DriverRules, R5_SizesNearTheEndOfTheAddressSpaceAreErrors) {
  const Bytes huge = RoundDown(~Bytes{0}, granule_);
  EXPECT_FALSE(driver_.Reserve(huge, granule_).ok());
  EXPECT_FALSE(driver_.Create(huge).ok());
  EXPECT_TRUE(IsRefused(driver_.SetAccess(Reserve(1), huge)));
  EXPECT_TRUE(IsRefused(driver_.Map(Address(huge), granule_, Create())));
}

TEST_P(DriverRules, R5_AlignmentIsAPowerOfTwoOfAtLeastAGranule) {
  for (const Bytes alignment : {granule_ + 1, 3 * granule_}) {
    EXPECT_TRUE(IsRefused(driver_.Reserve(granule_, alignment))) << alignment;
  }
  // CUDA accepts these, and aligns to a granule nevertheless.
  for (const Bytes alignment : {Bytes{0}, granule_ / 2}) {
    const absl::StatusOr<Address> address = driver_.Reserve(granule_, alignment);
    EXPECT_TRUE(address.ok() ? *address % granule_ == 0 : IsRefused(address)) << alignment;
  }
  for (const Bytes alignment : {granule_, 2 * granule_, 64 * granule_, kGiB}) {
    const absl::StatusOr<Address> address = driver_.Reserve(granule_, alignment);
    ASSERT_TRUE(Succeeds(address));
    EXPECT_EQ(*address % alignment, 0u);
  }
}

// ---- R6: Release takes exactly what Reserve gave, with nothing mapped in it.

TEST_P(DriverRules, R6_OnlyWholeReservationsAreReleased) {
  const Address base = Reserve(4);
  EXPECT_TRUE(IsRefused(driver_.Release(base, 3 * granule_)));
  EXPECT_TRUE(IsRefused(driver_.Release(base, 5 * granule_)));
  EXPECT_TRUE(IsRefused(driver_.Release(base + granule_, 3 * granule_)));
  EXPECT_TRUE(Succeeds(driver_.Release(base, 4 * granule_)));
  EXPECT_TRUE(IsRefused(driver_.Release(base, 4 * granule_)));
}

TEST_P(DriverRules, R6_MappedReservationIsNotReleased) {
  const Address base = Reserve(4);
  for (const Bytes slot : {0, 1, 3}) {
    ASSERT_TRUE(Succeeds(Map(base + slot * granule_, Create())));
    EXPECT_TRUE(IsRefused(driver_.Release(base, 4 * granule_)));
    ASSERT_TRUE(Succeeds(Unmap(base + slot * granule_)));
  }
  EXPECT_TRUE(Succeeds(driver_.Release(base, 4 * granule_)));
}

// ---- R7: a destroyed chunk lives until the last Unmap.

TEST_P(DriverRules, R7_BytesOfADestroyedChunkLiveUntilTheLastUnmap) {
  const Address base = Reserve(2);
  const Bytes free_at_first = FreeBytes();
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  ASSERT_TRUE(Succeeds(Map(base + granule_, chunk)));
  ASSERT_TRUE(Succeeds(driver_.SetAccess(base, 2 * granule_)));
  Poke(base, 42);
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
  EXPECT_EQ(FreeBytes(), free_at_first - granule_);
  ASSERT_TRUE(Succeeds(Unmap(base)));
  EXPECT_EQ(FreeBytes(), free_at_first - granule_);
  EXPECT_EQ(Peek(base + granule_), 42);
  ASSERT_TRUE(Succeeds(Unmap(base + granule_)));
  EXPECT_EQ(FreeBytes(), free_at_first);
}

TEST_P(DriverRules, R7_DestroyedChunkCannotBeMappedAgain) {
  const Address base = Reserve(2);
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
  EXPECT_TRUE(IsRefused(Map(base + granule_, chunk)));
  EXPECT_TRUE(IsRefused(driver_.Destroy(chunk)));
}

// ---- R8: an import of a chunk counts as a mapping of it.

TEST_P(DriverRules, R8_ImportedChunkOutlivesItsFirstHandle) {
  const Address base = Reserve(2);
  const Bytes free_at_first = FreeBytes();
  const ChunkHandle chunk = Create();
  const absl::StatusOr<ChunkHandle> imported = subject_->Share(chunk);
  ASSERT_TRUE(Succeeds(imported));
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  ASSERT_TRUE(Succeeds(SetAccess(base)));
  Poke(base, 7);
  ASSERT_TRUE(Succeeds(Unmap(base)));
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
  EXPECT_EQ(FreeBytes(), free_at_first - granule_) << "the importer has it still";
  ASSERT_TRUE(Succeeds(Map(base + granule_, *imported)));
  ASSERT_TRUE(Succeeds(SetAccess(base + granule_)));
  EXPECT_EQ(Peek(base + granule_), 7);
  ASSERT_TRUE(Succeeds(Unmap(base + granule_)));
  ASSERT_TRUE(Succeeds(driver_.Destroy(*imported)));
  EXPECT_EQ(FreeBytes(), free_at_first);
}

TEST_P(DriverRules, R8_ChunkThatDoesNotExistCannotBeImported) {
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
  EXPECT_TRUE(IsRefused(subject_->Share(chunk)));
}

}  // namespace
}  // namespace thimble
