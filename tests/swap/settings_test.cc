#include "allocator/offline/schedule/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::schedule {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& result) {
  return std::string(result.status().message());
}

TEST(SwapSettings, BusesHaveNamesOrFigures) {
  EXPECT_EQ(ParseBus("13")->out_bytes_per_second, 13200000000);
  EXPECT_EQ(ParseBus("13")->in_latency_ns, 9700);
  EXPECT_EQ(ParseBus("24")->in_bytes_per_second, 24000000000);
  EXPECT_EQ(ParseBus("55.5/50")->out_bytes_per_second, 55500000000);
  EXPECT_EQ(ParseBus("55.5/50")->in_bytes_per_second, 50000000000);
  EXPECT_THAT(ErrorOf(ParseBus("fast")), HasSubstr("'fast' is not known: write 13, 24, or OUT/IN"));
  EXPECT_THAT(ErrorOf(ParseBus("0/24")), HasSubstr("out in GB/s '0' is not a number from 0.1"));
  EXPECT_THAT(ErrorOf(ParseBus("24/x")), HasSubstr("in in GB/s 'x'"));
  EXPECT_EQ(ParseBus("20/21")->out_latency_ns, 10000);
  EXPECT_EQ(ParseBus("20/21/9.5/0")->in_bytes_per_second, 21000000000);
  EXPECT_EQ(ParseBus("20/21/9.5/0")->out_latency_ns, 9500);
  EXPECT_EQ(ParseBus("20/21/9.5/0")->in_latency_ns, 0);
  EXPECT_THAT(ErrorOf(ParseBus("20/21/9")), HasSubstr("'20/21/9' is not known"));
  EXPECT_THAT(ErrorOf(ParseBus("20/21/9/x")), HasSubstr("latency in in us 'x'"));
}

TEST(SwapSettings, LimitsAreSizes) {
  EXPECT_EQ(*ParseLimit("3GiB"), 3221225472);
  EXPECT_EQ(*ParseLimit("1000"), 1000);
  EXPECT_THAT(ErrorOf(ParseLimit("0")), HasSubstr("limit '0' is not from 1 byte"));
  EXPECT_THAT(ErrorOf(ParseLimit("much")), HasSubstr("'much'"));
}

TEST(SwapSettings, SlowdownsArePartsPerMillionAndRunAheadIsNanoseconds) {
  EXPECT_EQ(*ParseSlowdown("5"), 50000);
  EXPECT_EQ(*ParseSlowdown("0.05"), 500);
  EXPECT_EQ(*ParseSlowdown("1000"), 10000000);
  EXPECT_THAT(ErrorOf(ParseSlowdown("-1")), HasSubstr("'-1' is not a number from 0 to 1000"));
  EXPECT_THAT(ErrorOf(ParseSlowdown("nan")), HasSubstr("'nan'"));
  EXPECT_EQ(*ParseRunAhead("2.5"), 2500000);
  EXPECT_THAT(ErrorOf(ParseRunAhead("x")), HasSubstr("run-ahead in milliseconds 'x'"));
}

using Values = std::vector<std::pair<std::string, std::string>>;

TEST(SwapSettings, AreReadTogether) {
  const absl::StatusOr<Settings> settings =
      ReadSettings({{"run_ahead_ms", "2"}, {"limit", "8GiB"}, {"bus", "24"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->goal.limit, std::int64_t{8} << 30);
  EXPECT_EQ(settings->machine.out_bytes_per_second, 24000000000);
  EXPECT_EQ(settings->machine.run_ahead_ns, 2000000);
  EXPECT_EQ(ReadSettings(Values{{"slowdown", "5"}})->goal.slowdown, 50000);
  EXPECT_EQ(ReadSettings({})->goal.slowdown, 0);
  EXPECT_THAT(ErrorOf(ReadSettings(Values{{"speed", "1"}})),
              HasSubstr("'speed' is not a setting: write limit"));
  EXPECT_THAT(ErrorOf(ReadSettings({{"limit", "1"}, {"slowdown", "0"}})),
              HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf(ReadSettings(Values{{"bus", ""}})), HasSubstr("bus '' is not known"));
}

TEST(SwapSettings, TheMachinesBusCountsIfNeitherUserNorRecordingHasOne) {
  const Settings with = *ReadSettings({{"machine_bus", "20/21/1/2"}, {"run_ahead_ms", "3"}});
  Problem problem;
  EXPECT_EQ(MachineFor(problem, with).out_bytes_per_second, 20000000000);
  EXPECT_EQ(MachineFor(problem, with).in_latency_ns, 2000);
  EXPECT_EQ(MachineFor(problem, with).run_ahead_ns, 3000000);
  problem.measured = {7000000000, 8000000000};
  EXPECT_EQ(MachineFor(problem, with).out_bytes_per_second, 7000000000);
  EXPECT_EQ(MachineFor(problem, *ReadSettings({{"bus", "24"}, {"machine_bus", "20/21"}}))
                .out_bytes_per_second,
            24000000000);
}

TEST(SwapSettings, CopiesAreRoundedUpToWholeNanoseconds) {
  Machine machine;
  EXPECT_EQ(OutNs(machine, 132000000), 10047000);
  EXPECT_EQ(OutNs(machine, 132000001), 10047001);
  EXPECT_EQ(InNs(machine, 122000000), 10009700);
  EXPECT_EQ(InNs(machine, kMaxBytes), 5767929860329);
}

TEST(SwapSettings, TheMeasuredBusCountsUnlessOneIsGiven) {
  Problem problem;
  EXPECT_EQ(MachineFor(problem, *ReadSettings({})).out_bytes_per_second, 13200000000);
  problem.measured = {7000000000, 6000000000};
  const Machine measured = MachineFor(problem, *ReadSettings(Values{{"run_ahead_ms", "2"}}));
  EXPECT_EQ(measured.out_bytes_per_second, 7000000000);
  EXPECT_EQ(measured.in_bytes_per_second, 6000000000);
  EXPECT_EQ(measured.run_ahead_ns, 2000000);
  EXPECT_EQ(MachineFor(problem, *ReadSettings(Values{{"bus", "24"}})).out_bytes_per_second,
            24000000000);
}

}  // namespace
}  // namespace thimble::schedule
