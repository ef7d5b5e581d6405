// How the plugin reads THIMBLE_CONF, and when.
#include "tf_plugin/settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"
#include "tests/tf_plugin/log_lines.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/wanted.h"

namespace thimble::tf {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ErrorOf(const std::string& conf) {
  const absl::StatusOr<Settings> settings = ParseSettings(conf);
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument) << conf;
  return std::string(settings.status().message());
}

TEST(Wanted, OnlyTheTwoVariablesWakeThimble) {
  EXPECT_FALSE(IsWanted(nullptr, nullptr));
  EXPECT_FALSE(IsWanted("", ""));
  EXPECT_FALSE(IsWanted("cuda_malloc_async", "limit:1GiB"));
  EXPECT_FALSE(IsWanted(nullptr, "device:0"));
  EXPECT_FALSE(IsWanted(nullptr, "device:cpus"));
  EXPECT_FALSE(IsWanted(nullptr, "log:device:cpu"));
  EXPECT_TRUE(IsWanted("thimble", nullptr));
  for (const char* conf : {"device:cpu", "limit:1GiB,device:cpu", " device : cpu , limit:1GiB"}) {
    EXPECT_TRUE(IsWanted(nullptr, conf)) << conf;
  }
}

TEST(Settings, OwnKeysAreReadAndTheOthersHandedOn) {
  const absl::StatusOr<Settings> settings = ParseSettings(
      "front:bfc, limit : 4GiB,preallocate:off,retry_ms:250,log:/a:b/c,chunk:4MiB,"
      "plan:auto,plan_file:/d");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_FALSE(settings->cpu);
  EXPECT_EQ(settings->front, "bfc");
  EXPECT_EQ(settings->retry_ms, 250);
  EXPECT_EQ(settings->limit, "4GiB");
  DeviceSettings device;
  device.index = 1;
  device.ordinal = 2;
  device.limit = 1000;
  device.preallocate = true;
  device.peers = {0, 1};
  EXPECT_EQ(CoreOptions(*settings, device),
            "device:2,limit:1000,preallocate:on,peers:0+1,log:/a:b/c.1,chunk:4MiB,"
            "plan:auto,plan_file:/d.1");
}

TEST(Settings, SwapIsForTheCoreAndForDevices) {
  EXPECT_FALSE(ParseSettings("")->swap);
  EXPECT_FALSE(ParseSettings("swap:off")->swap);
  const absl::StatusOr<Settings> settings = ParseSettings("device:cpu,swap:auto");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->swap);
  EXPECT_TRUE(ParseSettings("device:cpu,swap_limit:1GiB")->swap);
  EXPECT_TRUE(ParseSettings("device:cpu,swap_slowdown:5%")->swap);
  EXPECT_TRUE(ParseSettings("device:cpu,swap:watch")->swap) << "ops announce what they use";
  EXPECT_EQ(CoreOptions(*settings, {}), "device:cpu,swap:auto");
}

TEST(Settings, DefaultsAreTensorFlows) {
  const absl::StatusOr<Settings> settings = ParseSettings("");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->front, "thimble");
  EXPECT_EQ(settings->retry_ms, 10000);
  EXPECT_EQ(CoreOptions(*settings, {}), "device:0");
  EXPECT_EQ(CoreOptions(*ParseSettings("device:cpu"), {}), "device:cpu");
}

TEST(Settings, MistakesAreNamedWithTheRemedy) {
  EXPECT_THAT(ErrorOf("front:best"), HasSubstr("'best' is not 'thimble' or 'bfc'"));
  EXPECT_THAT(ErrorOf("device:1"), HasSubstr("TensorFlow chooses the GPUs"));
  EXPECT_THAT(ErrorOf("peers:1"), HasSubstr("leave it out"));
  EXPECT_THAT(ErrorOf("retry_ms:1s"), HasSubstr("'1s'"));
  EXPECT_THAT(ErrorOf("preallocate:yes"), HasSubstr("'on' or 'off'"));
  EXPECT_THAT(ErrorOf("swap:auto,front:bfc"), HasSubstr("leave front:bfc out"));
  EXPECT_THAT(ErrorOf("chunk:2MiB,chunk:4MiB"), HasSubstr("'chunk' is given twice"));
  EXPECT_THAT(ErrorOf("front:bfc,front:bfc"), HasSubstr("'front' is given twice"));
  EXPECT_THAT(ErrorOf("swap_limit:1GiB,front:bfc"), HasSubstr("leave front:bfc out"));
  EXPECT_THAT(ErrorOf("cumemalloc:driver"), HasSubstr("unknown option 'cumemalloc'"));
}

absl::StatusOr<thimble_arena*> Open(const std::string& conf, DeviceSettings device = {}) {
  const absl::StatusOr<Settings> settings = ParseSettings("device:cpu," + conf);
  if (!settings.ok()) return settings.status();
  return OpenArena(*settings, device);
}

TEST(Arenas, TheLowerOfTwoLimitsCounts) {
  LogLines log;
  DeviceSettings device;
  device.limit = 16 * kMiB;
  const absl::StatusOr<thimble_arena*> lower = Open("memory:64MiB,limit:8MiB", device);
  ASSERT_TRUE(lower.ok()) << lower.status();
  EXPECT_EQ(LimitOf(*lower), 8 * kMiB);
  EXPECT_THAT(log.lines(), IsEmpty());
  const absl::StatusOr<thimble_arena*> higher = Open("memory:64MiB,limit:32MiB", device);
  ASSERT_TRUE(higher.ok()) << higher.status();
  EXPECT_EQ(LimitOf(*higher), 16 * kMiB);
  ASSERT_THAT(log.lines(), SizeIs(1));
  EXPECT_THAT(log.lines().front(), HasSubstr("limit:32MiB"));
  thimble_destroy(*lower);
  thimble_destroy(*higher);
}

TEST(Arenas, TheConfOverrulesTensorFlowOnPreallocation) {
  DeviceSettings device;
  device.limit = 8 * kMiB;
  device.preallocate = true;
  const auto reserved = [&](const std::string& conf) {
    const absl::StatusOr<thimble_arena*> arena = Open("memory:64MiB" + conf, device);
    EXPECT_TRUE(arena.ok()) << arena.status();
    thimble_stats stats = {};
    stats.struct_size = sizeof(stats);
    thimble_get_stats(*arena, &stats);
    thimble_destroy(*arena);
    return stats.reserved;
  };
  EXPECT_EQ(reserved(""), 8 * kMiB);
  EXPECT_EQ(reserved(",preallocate:off"), 0u);
}

TEST(Arenas, WhatTheCoreRefusesIsTold) {
  const auto error = [](const std::string& conf) {
    const absl::StatusOr<thimble_arena*> arena = Open(conf);
    EXPECT_EQ(arena.status().code(), absl::StatusCode::kInvalidArgument) << conf;
    return std::string(arena.status().message());
  };
  EXPECT_THAT(error("limti:1GiB"), HasSubstr("unknown option 'limti': the options are device"));
  EXPECT_THAT(error("limti:1GiB"), HasSubstr(", front"));
  EXPECT_THAT(error("limit:lots"), HasSubstr("lots"));
  EXPECT_THAT(error("memory:1GiB,limit:2GiB"), HasSubstr("limit:2147483648"));
}

TEST(Arenas, ArePublishedByDevice) {
  HostArena arena;
  EXPECT_EQ(FindArena(7), nullptr);
  PublishArena(7, arena.get());
  EXPECT_EQ(FindArena(7), arena.get());
  PublishArena(7, nullptr);
}

}  // namespace
}  // namespace thimble::tf
