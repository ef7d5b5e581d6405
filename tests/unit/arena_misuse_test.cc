// Arena, misuse: an error that says what is wrong, and nothing changed.
#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

struct Kind {
  const char* name;
  Bytes bytes;
  bool magazines;
  bool stitched;
};

// The same mistakes with every kind of block, because each takes another path through Free().
class ArenaMisuse : public ArenaTest, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    ArenaOptions options;
    options.magazines = GetParam().magazines;
    Make(16 * kChunk, options);
    if (GetParam().stitched) {
      const std::vector<Address> blocks = Fill(16, kChunk);
      for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
    }
    block_ = Allocate(GetParam().bytes);
    ASSERT_EQ(arena_->Query(block_)->seams > 0, GetParam().stitched);
    before_ = stats();
  }

  // Free() and Query() refuse `address`, by name, and nothing has changed.
  std::string ErrorOf(Address address, StreamId stream = kFirst) {
    const absl::Status status = arena_->Free(address, stream);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    char name[32];
    std::snprintf(name, sizeof(name), "%#llx", static_cast<unsigned long long>(address.value()));
    EXPECT_THAT(MessageOf(status), HasSubstr(name));
    EXPECT_EQ(arena_->Query(address).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(stats().in_use, before_.in_use);
    EXPECT_EQ(stats().live_blocks, before_.live_blocks);
    return MessageOf(status);
  }

  Address block_;
  ArenaStats before_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ArenaMisuse,
                         testing::Values(Kind{"Small", 700, true, false},
                                         Kind{"SmallWithoutMagazines", 700, false, false},
                                         Kind{"Large", 2 * kChunk, true, false},
                                         Kind{"Stitched", 3 * kChunk, true, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ArenaMisuse, ADoubleFreeIsRefused) {
  Free(block_);
  before_ = stats();
  EXPECT_THAT(ErrorOf(block_), HasSubstr("freed twice"));
  EXPECT_THAT(ErrorOf(block_, kSecond), HasSubstr("freed twice"));
}

TEST_P(ArenaMisuse, AnInteriorPointerIsRefused) {
  for (const Bytes inside : {Bytes{1}, Bytes{255}, kUnit, GetParam().bytes - 1}) {
    const std::string error = ErrorOf(block_ + inside);
    EXPECT_THAT(error, HasSubstr("point")) << error;
  }
  Free(block_);
}

TEST_P(ArenaMisuse, AForeignPointerIsRefused) {
  int local = 0;
  for (const Address address :
       {Address{1}, Address{kUnit}, ToAddress(&local), Address{std::uint64_t{1} << 47},
        Address{~std::uint64_t{0}}, Address{~std::uint64_t{255}}}) {
    EXPECT_THAT(ErrorOf(address), HasSubstr("not memory of this arena"));
  }
}

TEST_P(ArenaMisuse, AnAddressThatWasNeverHandedOutIsRefused) {
  const Snapshot snapshot = arena_->GetSnapshot();
  ErrorOf(snapshot.home_base + snapshot.stats.limit - kUnit);
}

TEST_P(ArenaMisuse, TheArenaGoesOn) {
  for (int i = 0; i < 100; ++i) {
    ErrorOf(block_ + 1);
    ErrorOf(Address{4096});
  }
  Free(block_);
  Free(Allocate(GetParam().bytes));
}

TEST_P(ArenaMisuse, FreeingOnAnotherStreamIsAllowed) {
  Free(block_, kSecond);
  EXPECT_EQ(stats().live_blocks, before_.live_blocks - 1);
}

}  // namespace
}  // namespace thimble
