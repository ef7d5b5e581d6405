// Which time the clock gives to work. Everything is ready in the far future, so nothing here
// depends on how fast the test runs.
#include "tests/simgpu/driver/clock.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace simgpu {
namespace {

constexpr Nanoseconds kSoon = 1'000'000'000'000;
constexpr double kMegabyte = 1e6;

Options Parse(const std::string& conf) {
  Options options;
  std::string error;
  EXPECT_TRUE(ParseOptions(conf, &options, &error)) << error;
  return options;
}

// Of an A100 whose products and memory reach their peaks, so that figures are round.
Options Round(const std::string& conf) {
  Options options = Parse("clock:a100,gpus:4," + conf);
  Profile& profile = options.profile;
  profile.simd_efficiency = profile.tensor_efficiency = profile.memory_efficiency = 1;
  profile.memory_gbps = 2000;
  profile.bus_in_gbps = profile.bus_out_gbps = 20;
  profile.pageable_gbps = 5;
  profile.launch_us = profile.bus_in_us = profile.bus_out_us = 0;
  return options;
}

Demand Kernel(double bytes, double flops = 0, Math math = Math::kFp32) {
  Demand demand;
  demand.kind = Demand::Kind::kKernel;
  demand.bytes = bytes;
  demand.flops = flops;
  demand.math = math;
  return demand;
}

Demand Copy(Demand::Kind kind, double bytes, bool pageable = false) {
  Demand demand;
  demand.kind = kind;
  demand.bytes = bytes;
  demand.pageable = pageable;
  return demand;
}

Nanoseconds DurationOf(const Options& options, const Demand& demand) {
  Clock clock(options);
  return clock.Place(demand, kSoon, kSoon) - kSoon;
}

TEST(Durations, AreTheLargerOfArithmeticAndMemory) {
  const Options options = Round("slow:1");
  EXPECT_EQ(DurationOf(options, Kernel(200 * kMegabyte)), 100'000);
  EXPECT_EQ(DurationOf(options, Kernel(200 * kMegabyte, 19.5e8)), 100'000);
  EXPECT_EQ(DurationOf(options, Kernel(200 * kMegabyte, 39e8)), 200'000);
  EXPECT_EQ(DurationOf(options, Kernel(0, 312e8, Math::kHalf)), 100'000);
  EXPECT_EQ(DurationOf(options, Kernel(0, 312e8, Math::kTf32)), 200'000);
}

TEST(Durations, AreThoseOfTheUnitsThatTheGpuHas) {
  Options options = Round("slow:1");
  Demand convolution = Kernel(0, 156e8, Math::kTf32);
  convolution.simd_flops = 156e7;
  EXPECT_EQ(DurationOf(options, convolution), 80'000) << "fewer operations in fp32";
  convolution.simd_flops = 0;
  EXPECT_EQ(DurationOf(options, convolution), 100'000);
  options.profile.tf32_tflops = 0;
  EXPECT_EQ(DurationOf(options, convolution), 800'000);
  EXPECT_EQ(DurationOf(options, Kernel(0, 19.5e8, Math::kFp64)), 100'000);
}

TEST(Durations, OfCopiesAreThoseOfTheirLink) {
  const Options options = Round("nvlinks:4");
  EXPECT_EQ(DurationOf(options, Copy(Demand::Kind::kCopyIn, 20 * kMegabyte)), 1'000'000);
  EXPECT_EQ(DurationOf(options, Copy(Demand::Kind::kCopyOut, 20 * kMegabyte)), 1'000'000);
  EXPECT_EQ(DurationOf(options, Copy(Demand::Kind::kCopyOut, 20 * kMegabyte, true)), 4'000'000);
  Demand peer = Copy(Demand::Kind::kCopyPeer, 300 * kMegabyte);
  peer.peer = 1;
  EXPECT_EQ(DurationOf(options, peer), 1'000'000) << "by NVLink";
  peer.peer = 2;
  EXPECT_EQ(DurationOf(options, peer), 15'000'000) << "by the bus";
}

TEST(Durations, GrowWithSlowAndVanishWithoutAClock) {
  EXPECT_EQ(DurationOf(Round("slow:10"), Kernel(200 * kMegabyte)), 1'000'000);
  EXPECT_EQ(DurationOf(Parse("clock:off"), Kernel(200 * kMegabyte)), 0);
}

TEST(Engines, DoOneThingAtATime) {
  Clock clock(Round("slow:1"));
  const Demand kernel = Kernel(200 * kMegabyte);
  EXPECT_EQ(clock.Place(kernel, kSoon, kSoon), kSoon + 100'000);
  EXPECT_EQ(clock.Place(kernel, kSoon, kSoon), kSoon + 200'000) << "of another stream";
  EXPECT_EQ(clock.Place(Copy(Demand::Kind::kCopyIn, 2 * kMegabyte), kSoon, kSoon), kSoon + 100'000);
  EXPECT_EQ(clock.Place(Copy(Demand::Kind::kCopyOut, 2 * kMegabyte), kSoon, kSoon),
            kSoon + 100'000);
  Demand other = kernel;
  other.device = 1;
  EXPECT_EQ(clock.Place(other, kSoon, kSoon), kSoon + 100'000);
  EXPECT_EQ(clock.EndOf(0), kSoon + 200'000);
}

TEST(Engines, DoWhatIsReadyBeforeWhatWaits) {
  Clock clock(Round("slow:1"));
  const Demand kernel = Kernel(200 * kMegabyte);
  EXPECT_EQ(clock.Place(kernel, kSoon, kSoon + 500'000), kSoon + 600'000);
  EXPECT_EQ(clock.Place(kernel, kSoon, kSoon), kSoon + 100'000);
  EXPECT_EQ(clock.Place(Kernel(900 * kMegabyte), kSoon, kSoon), kSoon + 1'050'000)
      << "fits only behind";
  EXPECT_EQ(clock.Place(Kernel(800 * kMegabyte), kSoon, kSoon), kSoon + 500'000) << "fits exactly";
}

TEST(Engines, APeerCopyTakesBothEnds) {
  Clock clock(Round("slow:1"));
  Demand peer = Copy(Demand::Kind::kCopyPeer, 2 * kMegabyte);
  peer.peer = 1;
  Demand in = Copy(Demand::Kind::kCopyIn, 2 * kMegabyte);
  in.device = 1;
  EXPECT_EQ(clock.Place(in, kSoon, kSoon), kSoon + 100'000);
  EXPECT_EQ(clock.Place(Copy(Demand::Kind::kCopyOut, 4 * kMegabyte), kSoon, kSoon),
            kSoon + 200'000);
  EXPECT_EQ(clock.Place(peer, kSoon, kSoon), kSoon + 300'000);
  EXPECT_EQ(clock.Place(in, kSoon, kSoon), kSoon + 200'000);
  EXPECT_EQ(clock.Place(in, kSoon, kSoon), kSoon + 400'000);
}

TEST(Engines, AreSummedUpAsModelled) {
  Clock clock(Round("slow:10"));
  clock.Place(Kernel(200 * kMegabyte), kSoon, kSoon);
  clock.Place(Copy(Demand::Kind::kCopyIn, 20 * kMegabyte), kSoon, kSoon);
  EXPECT_DOUBLE_EQ(clock.SummaryOf(0).compute_seconds, 1e-4);
  EXPECT_DOUBLE_EQ(clock.SummaryOf(0).in_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(clock.SummaryOf(0).out_seconds, 0);
  EXPECT_DOUBLE_EQ(clock.SummaryOf(0).starved_seconds, 0);
}

TEST(Names, AreSummedUpAndSorted) {
  Clock clock(Round("slow:10,summary:on"));
  for (const char* const name : {"b", "a", "b", "c", ""}) {
    clock.Place(Kernel(*name == 'a' ? 1e9 : 2e8), kSoon, kSoon, name);
  }
  const auto longest = clock.Longest(2);
  ASSERT_EQ(longest.size(), 2u);
  EXPECT_EQ(longest[0].first, "a");
  EXPECT_DOUBLE_EQ(longest[0].second, 5e-4);
  EXPECT_EQ(longest[1].first, "b");
  EXPECT_DOUBLE_EQ(longest[1].second, 2e-4);
  EXPECT_TRUE(Clock(Round("slow:1")).Longest(1).empty());
}

}  // namespace
}  // namespace simgpu
