// PointerMap: finds every address that was inserted and none that was removed, however long it
// runs.
#include "allocator/stitch/pointer_map.h"

#include "absl/container/flat_hash_map.h"
#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

TEST(PointerMap, AddressesThatAreNoMultiplesOfTheUnitAreNeverFound) {
  PointerMap map;
  map.Put(Address(4096), 1);
  for (Address address(4097); address < Address(4096 + kUnit); ++address) {
    ASSERT_EQ(map.Find(address), kNoBlock);
    ASSERT_EQ(map.Take(address), kNoBlock);
  }
  EXPECT_EQ(map.Find(Address(4096)), 1u);
}

TEST(PointerMap, ZeroIsNoAddress) {
  PointerMap map;
  EXPECT_EQ(map.Find(Address()), kNoBlock);
  EXPECT_EQ(map.Take(Address()), kNoBlock);
}

TEST(PointerMap, AnAddressIsTakenOnce) {
  PointerMap map;
  map.Put(Address(kMiB), 5);
  EXPECT_EQ(map.Take(Address(kMiB)), 5u);
  EXPECT_EQ(map.Take(Address(kMiB)), kNoBlock);
  EXPECT_EQ(map.size(), 0u);
}

TEST(PointerMap, GrowsAndForgetsNothing) {
  PointerMap map;
  for (BlockId id = 0; id < 100'000; ++id) map.Put(Address((id + 1) * kUnit), id);
  for (BlockId id = 0; id < 100'000; ++id) ASSERT_EQ(map.Find(Address((id + 1) * kUnit)), id);
}

// Few different addresses: long probe runs, entries pulled back into holes all the time.
TEST(PointerMap, AgreesWithTheStandardMapAfterAMillionChanges) {
  PointerMap map;
  absl::flat_hash_map<Address, BlockId> expected;
  workloads::Random random(11);
  for (int round = 0; round < 1'000'000; ++round) {
    const Address address(kTiB + random.Index(4000) * kUnit);
    const auto it = expected.find(address);
    if (it == expected.end()) {
      ASSERT_EQ(map.Find(address), kNoBlock);
      map.Put(address, static_cast<BlockId>(round));
      expected.emplace(address, round);
    } else {
      ASSERT_EQ(map.Take(address), it->second);
      expected.erase(it);
    }
  }
  ASSERT_EQ(map.size(), expected.size());
  std::size_t visited = 0;
  map.ForEach([&](Address address, BlockId block) {
    ++visited;
    ASSERT_EQ(expected.at(address), block);
  });
  EXPECT_EQ(visited, expected.size());
}

}  // namespace
}  // namespace thimble
