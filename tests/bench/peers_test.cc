// What every policy must fulfil before its figures mean anything: blocks share no byte, no policy
// takes more than the device has, and the oracle notices violations.
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/offline/logs/trace_text.h"
#include "gtest/gtest.h"
#include "tests/bench/measure.h"
#include "tests/bench/overlap_oracle.h"
#include "tests/bench/subject.h"
#include "tests/bench/workload.h"
#include "tests/workloads/generators.h"

namespace thimble::bench {
namespace {

Workload Generated(const std::string& name, std::size_t ops) {
  for (const workloads::Generator& generator : workloads::AllGenerators()) {
    if (generator.name != name) continue;
    const auto trace = ParseTrace(workloads::Generate(generator, ops, 7), name);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return MakeWorkload(name, *trace);
  }
  ADD_FAILURE() << "no generator " << name;
  return {};
}

Workload FromText(absl::string_view text) {
  const auto trace = ParseTrace(text, "text");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return MakeWorkload("text", *trace);
}

class PolicyTest : public ::testing::TestWithParam<PolicyKind> {};

TEST_P(PolicyTest, NoBlockSharesAByteWithAnother) {
  for (const char* name : {"mixed", "kvgrow", "decode", "unet"}) {
    SCOPED_TRACE(name);
    const Workload workload = Generated(name, 4000);
    // With little room, where some run out of it, and with plenty.
    for (const Bytes percent : {Bytes{115}, Bytes{200}}) {
      const Bytes capacity = RoundUp(workload.max_live_bytes * percent / 100, kFitQuantum);
      EXPECT_EQ(CountOverlaps(workload, GetParam(), capacity, Sizing::kNatural, 2), 0u);
    }
  }
}

TEST_P(PolicyTest, TakesNoMoreThanTheDeviceHasAndSaysWhenItIsOut) {
  constexpr Bytes kCapacity = 64 * kMiB;
  Subject subject(GetParam(), kCapacity, Sizing::kNatural);
  int blocks = 0;
  while (subject.policy().Allocate(3 * kMiB, 0, 0) != 0) {
    ASSERT_LE(subject.device().reserved_bytes(), kCapacity);
    ASSERT_LE(++blocks, 21);
  }
  EXPECT_GE(blocks, 10);
}

TEST_P(PolicyTest, MoreThanTheDeviceIsRefused) {
  Subject subject(GetParam(), 64 * kMiB, Sizing::kNatural);
  EXPECT_EQ(subject.policy().Allocate(Bytes{1} << 40, 0, 0), 0u);
}

TEST_P(PolicyTest, FitIsEnoughAndLessThanMaxLiveNeverIs) {
  const Workload workload = Generated("mixed", 4000);
  const std::optional<Bytes> fit = FindFit(workload, GetParam());
  ASSERT_TRUE(fit.has_value());
  EXPECT_GE(*fit, workload.max_live_bytes);
  EXPECT_LT(*fit, 2 * workload.max_live_bytes);
}

TEST_P(PolicyTest, FreedMemoryIsUsedAgainWithoutTheDriver) {
  const Workload workload = FromText("A 1 5000000\nA 2 300\nF 1\nA 3 4000000\nF 2\n");
  const auto use = MeasureDriverUse(workload, GetParam(), 64 * kMiB, /*replays=*/20);
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->calls, 0u);
  EXPECT_GT(use->modelled_us, 0);
  EXPECT_EQ(use->calls_last_half, 0u);
}

TEST_P(PolicyTest, SpeedIsMeasuredOnlyWhereThereIsRoom) {
  const Workload workload = FromText("A 1 5000000\nA 2 300\nF 1\nF 2\n");
  const auto speeds = MeasureSpeed(workload, {{GetParam(), 64 * kMiB}, {GetParam(), kFitQuantum}});
  ASSERT_TRUE(speeds[0].has_value());
  EXPECT_GT(speeds[0]->ns_per_op, 0);
  EXPECT_GE(speeds[0]->p999_ns, speeds[0]->ns_per_op / 10);
  EXPECT_FALSE(speeds[1].has_value());
}

INSTANTIATE_TEST_SUITE_P(All, PolicyTest, ::testing::ValuesIn(AllPolicies()),
                         [](const auto& info) { return std::string(PolicyName(info.param)); });

// Stitching is what makes GMLake GMLake: without it this trace needs 2 GiB.
TEST(Gmlake, FusesScatteredChunksForALargeRequest) {
  std::string text;
  for (int i = 0; i < 64; ++i) absl::StrAppend(&text, "A ", i, " 16777216\n");
  for (int i = 0; i < 64; i += 2) absl::StrAppend(&text, "F ", i, "\n");
  absl::StrAppend(&text, "A 100 536870912\n");
  EXPECT_EQ(FindFit(FromText(text), PolicyKind::kGmlake), kGiB);
}

// Free pages of the small pool serve a large request, and vice versa.
TEST(Expandable, GivesPagesBackWhenMemoryIsOut) {
  std::string text;
  for (int i = 0; i < 40; ++i) absl::StrAppend(&text, "A ", i, " 1048576\n");
  for (int i = 0; i < 40; ++i) absl::StrAppend(&text, "F ", i, "\n");
  absl::StrAppend(&text, "A 100 41943040\n");
  EXPECT_EQ(FindFit(FromText(text), PolicyKind::kExpandable), 40 * kMiB);
}

TEST(Cnmem, NoBlockSharesAByteWithAnotherWhenItGrows) {
  const Workload workload = Generated("mixed", 4000);
  const Bytes capacity = RoundUp(2 * workload.max_live_bytes, kFitQuantum);
  EXPECT_EQ(CountOverlaps(workload, PolicyKind::kCnmem, capacity, Sizing::kGrowth, 2), 0u);
}

TEST(Cnmem, NeverMergesAcrossTwoRegions) {
  const Workload workload = FromText("A 1 4194304\nA 2 4194304\nF 1\nF 2\nA 3 8388608\n");
  EXPECT_EQ(MeasurePeakReserved(workload, PolicyKind::kCnmem, 0), 16 * kMiB);
  EXPECT_EQ(FindFit(workload, PolicyKind::kCnmem), 8 * kMiB);
}

TEST(OverlapOracle, NoticesABlockInsideAnotherAndBytesThatAreNotMapped) {
  Device device(64 * kMiB);
  Driver& driver = device.driver();
  const Address range = *driver.Reserve(4 * kMiB, 2 * kMiB);
  ASSERT_TRUE(driver.Map(range, 2 * kMiB, *driver.Create(2 * kMiB)).ok());
  OverlapOracle oracle(device);
  oracle.Allocated(range, kMiB);
  EXPECT_EQ(oracle.errors(), 0u);
  oracle.Allocated(range + kMiB / 2, kMiB);
  EXPECT_EQ(oracle.errors(), 1u);
  oracle.Allocated(range + 2 * kMiB, kMiB);
  EXPECT_EQ(oracle.errors(), 2u);
}

TEST(OverlapOracle, NoticesTwoAddressesOfTheSameBytes) {
  Device device(64 * kMiB);
  Driver& driver = device.driver();
  const Address range = *driver.Reserve(4 * kMiB, 2 * kMiB);
  const ChunkHandle chunk = *driver.Create(2 * kMiB);
  ASSERT_TRUE(driver.Map(range, 2 * kMiB, chunk).ok());
  ASSERT_TRUE(driver.Map(range + 2 * kMiB, 2 * kMiB, chunk).ok());
  OverlapOracle oracle(device);
  oracle.Allocated(range, kMiB);
  oracle.Allocated(range + 3 * kMiB, kMiB);
  EXPECT_EQ(oracle.errors(), 0u) << "different halves of the chunk";
  oracle.Freed(range);
  oracle.Allocated(range + kMiB, kMiB);
  EXPECT_EQ(oracle.errors(), 1u);
}

TEST(Workload, IsClosedAndWithoutWhatMovesNoMemory) {
  const Workload workload = FromText("A 1 8\nS\nA 2 0\nA 3 8\nF 3\n");
  EXPECT_EQ(workload.recorded_ops, 4u);
  ASSERT_EQ(workload.ops.size(), 6u) << "a step, A 1, a step, A 3, F 3, F 1";
  EXPECT_EQ(workload.ops.back().kind, TraceOpKind::kFree);
  EXPECT_EQ(workload.ops.back().id, workload.ops[1].id);
}

}  // namespace
}  // namespace thimble::bench
