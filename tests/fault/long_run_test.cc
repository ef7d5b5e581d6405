// For a long time one driver call in a hundred fails at random. No byte is lost, and the arena
// recovers with the driver.
#include "tests/effort.h"
#include "tests/fault/scene.h"

namespace thimble {
namespace {

constexpr Bytes kLimit = 64;  // chunks

class LongRun : public testing::TestWithParam<std::uint64_t> {
 protected:
  LongRun() : random_(GetParam()), scene_(Options()) {}

  static ArenaOptions Options() {
    ArenaOptions options;
    options.limit = kLimit;
    options.stitch = GetParam() % 4 != 3;
    options.magazines = GetParam() % 2 == 0;
    return options;
  }

  StreamId AnyStream() { return StreamId{random_.Index(3)}; }

  void Step() {
    // The next fault comes within 200 calls.
    if (scene_.faults().failures() != failures_) {
      failures_ = scene_.faults().failures();
      scene_.faults().FailCall(random_.Index(200));
    }
    if (random_.Index(200) == 0) return Trim();
    const bool below = scene_.oracle().in_use() < kLimit * Scene::kChunk * 3 / 4;
    if (scene_.oracle().size() == 0 || random_.Index(10) < (below ? 6 : 4)) return Allocate();
    const Address address = scene_.oracle().Nth(random_.Index(scene_.oracle().size()));
    ASSERT_TRUE(scene_.Free(address, AnyStream()).ok());
  }

  void Allocate() {
    const Bytes bytes = random_.LogUniform(1, 8 * Scene::kChunk);
    const Bytes alignment = random_.Index(8) == 0 ? 4 * kKiB : kUnit;
    const auto address = scene_.Allocate(bytes, AnyStream(), alignment);
    if (!address.ok()) ++refused_;
  }

  void Trim() {
    const Bytes before = scene_.stats().reserved;
    Bytes released = 0;
    const absl::Status status = scene_.arena().Trim(random_.Index(before + 1), &released);
    ASSERT_EQ(scene_.stats().reserved + released, before);
    if (!status.ok()) ++refused_;
  }

  workloads::Random random_;
  Scene scene_;
  std::uint64_t failures_ = 0;
  std::uint64_t refused_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Seeds, LongRun, testing::Range<std::uint64_t>(0, Effort(8)));

TEST_P(LongRun, OneCallInAHundredFailsAndNothingIsLost) {
  constexpr int kOperations = 25'000;
  ASSERT_TRUE(scene_.Open().ok());
  scene_.faults().FailCall(0);
  for (int operation = 0; operation < kOperations; ++operation) {
    SCOPED_TRACE(testing::Message() << "seed " << GetParam() << ", operation " << operation);
    ASSERT_NO_FATAL_FAILURE(Step());
    if (operation % 32 != 0) continue;
    ASSERT_TRUE(scene_.IsSound());
  }
  EXPECT_GT(failures_, 100u) << "the test has become too easy";
  EXPECT_GT(refused_, 0u);
  scene_.Heal();
  EXPECT_TRUE(scene_.TrimsToNothing());
  EXPECT_TRUE(scene_.Works());
  scene_.Close();
  EXPECT_TRUE(scene_.GaveAllBack());
}

}  // namespace
}  // namespace thimble
