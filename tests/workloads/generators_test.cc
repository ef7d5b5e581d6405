#include "tests/workloads/generators.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace thimble::workloads {
namespace {

class GeneratorTest : public ::testing::TestWithParam<Generator> {};

TEST_P(GeneratorTest, TraceParsesAndFreesEverything) {
  const std::string text = Generate(GetParam(), GetParam().default_ops, 7);
  const auto trace = ParseTrace(text, GetParam().name);
  ASSERT_TRUE(trace.ok()) << trace.status();
  Bytes live = 0;
  for (const TraceOp& op : trace->ops) {
    live += op.kind == TraceOpKind::kAllocate ? op.bytes : 0;
    live -= op.kind == TraceOpKind::kFree ? op.bytes : 0;
  }
  EXPECT_EQ(live, 0u);
  EXPECT_GT(trace->max_live_bytes, 256 * kMiB);
}

TEST_P(GeneratorTest, SameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  const std::string text = Generate(GetParam(), 2000, 7);
  EXPECT_EQ(text, Generate(GetParam(), 2000, 7));
  if (std::string(GetParam().name) != "sawtooth") {  // which has nothing random in it
    EXPECT_NE(text, Generate(GetParam(), 2000, 8));
  }
}

TEST_P(GeneratorTest, LengthIsAsAskedGiveOrTakeWhatMustEndTogether) {
  constexpr std::size_t kOps = 50000;
  const std::string text = Generate(GetParam(), kOps, 7);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  EXPECT_GE(lines, kOps);
  EXPECT_LT(lines, kOps + kOps / 4);
}

INSTANTIATE_TEST_SUITE_P(All, GeneratorTest, ::testing::ValuesIn(AllGenerators()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Generators, LogUniformFillsItsHouse) {
  const Generator& generator = AllGenerators().front();
  ASSERT_STREQ(generator.name, "loguniform");
  const auto trace = ParseTrace(Generate(generator, generator.default_ops, 7), "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_LE(trace->max_live_bytes, 40 * kGiB / 100 * 95);
  EXPECT_GT(trace->max_live_bytes, 40 * kGiB / 100 * 94);
}

}  // namespace
}  // namespace thimble::workloads
