// Thimble's promises on traces that are hard for it: three replays fit into little more than the
// live bytes, and driver time stays within a bound that depends only on the requests. This test
// uses no peer and no clock.
#include <map>
#include <string>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/bench/workload.h"
#include "tests/drivers/cost_driver.h"
#include "tests/workloads/generators.h"

namespace thimble::bench {
namespace {

constexpr int kReplays = 3;
constexpr Bytes kChunk = 2 * kMiB;

// Capacity in thousandths of the largest sum of live bytes at which three replays must succeed.
const std::map<std::string, Bytes>& PerMille() {
  static const auto* const kPerMille =
      new std::map<std::string, Bytes>{{"loguniform", 1020}, {"kvgrow", 1020}, {"twomodels", 1020},
                                       {"sawtooth", 1100},   {"decode", 1020}, {"unet", 1020}};
  return *kPerMille;
}

class HardTrace : public ::testing::TestWithParam<workloads::Generator> {};

TEST_P(HardTrace, FitsThreeTimesWithinTheBoundOnDriverTime) {
  const workloads::Generator& generator = GetParam();
  const auto trace = ParseTrace(Generate(generator, generator.default_ops, 7), generator.name);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Workload workload = MakeWorkload(generator.name, *trace);

  HostOptions options;
  options.total_bytes =
      RoundUp(workload.max_live_bytes / 1000 * PerMille().at(generator.name), kChunk);
  const auto host = HostDriver::Open(options);
  ASSERT_TRUE(host.ok()) << host.status();
  CostDriver cost(**host);
  const auto arena = Arena::Create(ArenaOptions(), &cost);
  ASSERT_TRUE(arena.ok()) << arena.status();

  std::vector<Address> addresses(workload.ids);
  Bytes chunks_asked_for = 0;
  for (int replay = 0; replay < kReplays; ++replay) {
    for (const TraceOp& op : workload.ops) {
      if (op.kind == TraceOpKind::kStep) continue;
      if (op.kind == TraceOpKind::kFree) {
        ASSERT_TRUE((*arena)->Free(addresses[op.id], op.stream).ok());
        continue;
      }
      const auto address = (*arena)->Allocate({op.bytes, 0, op.stream, op.key});
      ASSERT_TRUE(address.ok()) << "replay " << replay << ": " << address.status();
      addresses[op.id] = *address;
      // A stitched block maps its chunks and one more at each end.
      if (op.bytes >= kChunk / 16) chunks_asked_for += op.bytes / kChunk + 2;
    }
  }
  (*arena)->CheckInvariants();

  // Every chunk is created, mapped and given access once; every request is stitched at most once,
  // and what was mapped for it is unmapped at most once (docs/001-stitching.md).
  const DriverPrices prices;
  const double per_mapping = prices.map_us + prices.set_access_us;
  const double chunks = static_cast<double>(options.total_bytes / kChunk);
  const double bound = 2 * prices.reserve_us + chunks * (prices.create_us + per_mapping) +
                       static_cast<double>(chunks_asked_for) * (per_mapping + prices.unmap_us);
  EXPECT_LE(cost.virtual_us(), bound);
  EXPECT_GT(cost.virtual_us(), chunks * prices.create_us / 2) << "the bound is about something";
}

std::vector<workloads::Generator> HardGenerators() {
  std::vector<workloads::Generator> hard;
  for (const workloads::Generator& generator : workloads::AllGenerators()) {
    if (PerMille().count(generator.name) > 0) hard.push_back(generator);
  }
  return hard;
}

INSTANTIATE_TEST_SUITE_P(All, HardTrace, ::testing::ValuesIn(HardGenerators()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HardTraces, AreAllThere) { EXPECT_EQ(HardGenerators().size(), PerMille().size()); }

}  // namespace
}  // namespace thimble::bench
