// What can be confused is a type: what must not compile does not, and the rest is arithmetic.
#include "allocator/base/ids.h"

#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "allocator/stitch/block.h"
#include "allocator/swap/next_use.h"
#include "allocator/vmm/alias_space.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

template <typename A, typename B, typename = void>
constexpr bool kAdds = false;
template <typename A, typename B>
constexpr bool kAdds<A, B, std::void_t<decltype(std::declval<A>() + std::declval<B>())>> = true;

template <typename A, typename B, typename = void>
constexpr bool kCompares = false;
template <typename A, typename B>
constexpr bool kCompares<A, B, std::void_t<decltype(std::declval<A>() < std::declval<B>())>> = true;

static_assert(!std::is_convertible_v<Bytes, Address> && !std::is_convertible_v<Address, Bytes>);
static_assert(!std::is_convertible_v<void*, Address> && !std::is_constructible_v<Address, void*>);
static_assert(!std::is_constructible_v<Address, StreamSeq>);
static_assert(!std::is_convertible_v<Extent, AddressRange>);
static_assert(!std::is_convertible_v<StreamSeq, Epoch> && !std::is_convertible_v<Epoch, OpTime>);

static_assert(kAdds<Address, Bytes> && !kAdds<Address, Address> && !kAdds<Address, OpTime>);
static_assert(kCompares<Address, Address> && !kCompares<Address, Bytes>);
static_assert(!kCompares<Address, OpTime> && !kCompares<StreamSeq, Epoch>);

static_assert(std::is_same_v<decltype(Address() - Address()), Bytes>);
static_assert(std::is_same_v<decltype(Address() - kKiB), Address>);

static_assert(sizeof(Address) == sizeof(std::uint64_t) && sizeof(Epoch) == sizeof(std::uint32_t));
static_assert(std::is_trivially_copyable_v<Address> && std::is_trivially_copyable_v<Epoch>);

TEST(Ids, AddressesAreAsFarApartAsTheirNumbers) {
  const Address base(kMiB);
  Address at = base;
  at += 3 * kKiB;
  EXPECT_EQ(at - base, 3 * kKiB);
  EXPECT_EQ(at - kKiB, base + 2 * kKiB);
  EXPECT_EQ(at % kMiB, 3 * kKiB);
  EXPECT_TRUE(base < at && base <= at && at > base && at >= base && at != base);
  EXPECT_EQ((AddressRange{base, at}).bytes(), 3 * kKiB);
  EXPECT_EQ((Extent{kKiB, kMiB}).bytes(), kMiB - kKiB);
}

TEST(Ids, ANewOneIsNone) {
  EXPECT_FALSE(Address());
  EXPECT_TRUE(Address(1));
  EXPECT_EQ(++StreamSeq(), StreamSeq(1));
}

TEST(Ids, PointersAreAddressesAndBack) {
  int local = 0;
  EXPECT_EQ(ToPointer(ToAddress(&local)), &local);
  EXPECT_FALSE(ToAddress(nullptr));
  const absl::flat_hash_map<Address, int> known = {{ToAddress(&local), 7}};
  EXPECT_EQ(known.at(ToAddress(&local)), 7);
}

}  // namespace
}  // namespace thimble
