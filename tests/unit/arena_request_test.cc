// Arena, requests: every size and alignment there is gives a block or a clear error.
#include <algorithm>

#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kLimit = 16 * kMiB;

class ArenaRequest : public ArenaTest {
 protected:
  void SetUp() override { Make(kLimit); }

  void ExpectUsable() {
    const Address address = Allocate(kChunk);
    ByteAt(address) = 1;
    Free(address);
  }
};

TEST_F(ArenaRequest, NothingIsAtAddressZero) {
  const auto address = arena_->Allocate({0, 0, kFirst, 0});
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(*address, Address());
  EXPECT_TRUE(arena_->Free(Address(), kFirst).ok());
  EXPECT_EQ(stats().allocations, 0u);
}

std::vector<Bytes> EverySize() {
  std::vector<Bytes> sizes = {~Bytes{0}, 104729, 15485863};  // two primes among them
  for (const Bytes middle : {kUnit, kGranule, kChunk, kMagazineLargest, kLimit}) {
    for (const Bytes size : {middle - 1, middle, middle + 1}) sizes.push_back(size);
  }
  for (int log = 0; log < 64; ++log) {
    for (const int delta : {-1, 0, 1}) sizes.push_back((Bytes{1} << log) + delta);
  }
  sizes.erase(std::remove(sizes.begin(), sizes.end(), 0), sizes.end());
  return sizes;
}

TEST_F(ArenaRequest, EverySizeGivesABlockOrAnError) {
  int given = 0;
  int refused = 0;
  for (const Bytes size : EverySize()) {
    SCOPED_TRACE(size);
    const auto address = arena_->Allocate({size, 0, kFirst, 0});
    if (size > kLimit) {
      ++refused;
      ASSERT_EQ(address.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(MessageOf(address.status()), HasSubstr("out of memory"));
      EXPECT_EQ(arena_->LastOom().limit, kLimit);
      EXPECT_GE(arena_->LastOom().requested, RoundDown(size, kUnit));
      continue;
    }
    ++given;
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(*address % kUnit, 0u);
    EXPECT_EQ(stats().in_use, RoundUp(size, kUnit));
    ByteAt(*address) = 1;
    ByteAt(*address + size - 1) = 2;
    EXPECT_GE(arena_->Query(*address)->bytes, size);
    Free(*address);
  }
  EXPECT_GT(given, 70);
  EXPECT_GT(refused, 100);
  ExpectUsable();
}

TEST_F(ArenaRequest, EveryPowerOfTwoUpToTwoMiBIsAnAlignment) {
  for (Bytes alignment = 1; alignment <= HomeSpace::kAlignment; alignment *= 2) {
    for (const Bytes bytes : {Bytes{1}, 3 * kUnit, kChunk + 1, 5 * kChunk}) {
      const auto address = arena_->Allocate({bytes, alignment, kFirst, 0});
      ASSERT_TRUE(address.ok()) << address.status();
      EXPECT_EQ(*address % std::max(alignment, kUnit), 0u);
      ByteAt(*address + bytes - 1) = 1;
      // Every second one stays, so that the next has no convenient place.
      if (bytes % 2 == 0) Free(*address);
    }
  }
}

TEST_F(ArenaRequest, OtherAlignmentsAreRefusedByName) {
  for (const Bytes alignment : {Bytes{3}, Bytes{5}, Bytes{255}, Bytes{257}, 3 * kMiB,
                                2 * HomeSpace::kAlignment, Bytes{1} << 63, ~Bytes{0}}) {
    for (const Bytes bytes : {kUnit, kMiB}) {
      const auto address = arena_->Allocate({bytes, alignment, kFirst, 0});
      ASSERT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(MessageOf(address.status()),
                  HasSubstr("alignment " + std::to_string(alignment) + " "));
    }
  }
  ExpectUsable();
}

TEST_F(ArenaRequest, AStitchedBlockIsAlignedToo) {
  Make(16 * kChunk);
  const std::vector<Address> blocks = Fill(16, kChunk);
  for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  const auto address = arena_->Allocate({3 * kChunk, 4 * kUnit, kFirst, 0});
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(*address % (4 * kUnit), 0u);
  EXPECT_GT(arena_->Query(*address)->seams, 0u);
  EXPECT_GE(arena_->Query(*address)->bytes, 3 * kChunk);
}

TEST_F(ArenaRequest, QueryTellsSizeAndKey) {
  const Address address = Allocate(3 * kChunk + 1, kFirst, /*key=*/77);
  const auto info = arena_->Query(address);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->bytes, 3 * kChunk + kUnit);
  EXPECT_EQ(info->key, 77u);
  EXPECT_EQ(info->seams, 0u);
}

TEST(ArenaCreate, OptionsThatCannotBeMetAreRefusedByName) {
  Device device(kMiB);
  const auto error_of = [&](Bytes limit, Bytes chunk) {
    ArenaOptions options;
    options.limit = limit;
    options.chunk_bytes = chunk;
    const auto arena = Arena::Create(options, device.driver());
    EXPECT_EQ(arena.status().code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(arena.status());
  };
  EXPECT_THAT(error_of(2 * kMiB, kChunk), HasSubstr("limit:2097152"));
  EXPECT_THAT(error_of(kGranule, kChunk), HasSubstr("limit:4096"));
  EXPECT_THAT(error_of(kMiB, 3 * kGranule), HasSubstr("chunk:12288"));
  EXPECT_EQ(device.calls(), 0u) << "the driver need not be asked for that";
}

}  // namespace
}  // namespace thimble
