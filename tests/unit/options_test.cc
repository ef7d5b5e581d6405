// Options: every key, the message for every mistake, and options written back as text.
#include "allocator/arena/options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

std::string ErrorOf(const std::string& text) {
  const auto options = ParseOptions(text);
  EXPECT_FALSE(options.ok()) << text;
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  return MessageOf(options.status());
}

TEST(Options, EmptyTextMeansDefaults) {
  for (const char* text : {"", " ", ",", " , "}) {
    const auto options = ParseOptions(text);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(FormatOptions(*options), FormatOptions(Options{}));
  }
}

TEST(Options, EveryKeyIsRead) {
  const auto options = ParseOptions(
      "device:cpu, memory:8GiB ,limit:4GiB,preallocate:on,chunk:4MiB,stitch:off,retry_ms:250,"
      "log:/a:b/c,log_events:9,plan:auto,plan_file:/d/e");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->device, Options::kCpu);
  EXPECT_EQ(options->memory, 8 * kGiB);
  EXPECT_EQ(options->arena.limit, 4 * kGiB);
  EXPECT_TRUE(options->arena.preallocate);
  EXPECT_EQ(options->arena.chunk_bytes, 4 * kMiB);
  EXPECT_FALSE(options->arena.stitch);
  EXPECT_EQ(options->arena.retry.count(), 250);
  EXPECT_EQ(options->log, "/a:b/c");
  EXPECT_TRUE(options->arena.plan);
  EXPECT_EQ(options->arena.plan_file, "/d/e");
}

TEST(Options, SwappingHasAHostLimit) {
  const auto options = ParseOptions("swap:auto,host_limit:2GiB");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->arena.swap, SwapMode::kAuto);
  EXPECT_EQ(options->arena.host_limit, 2 * kGiB);
  EXPECT_THAT(ErrorOf("host_limit:1GiB"), HasSubstr("add swap:auto"));
  EXPECT_TRUE(ParseOptions("swap_limit:1GiB")->arena.swap == SwapMode::kAuto)
      << "why else would it be given";
  EXPECT_EQ(ParseOptions("swap_limit:1GiB")->arena.swap_limit, kGiB);
  EXPECT_EQ(ParseOptions("swap_slowdown:5%")->arena.swap_slowdown, 50000u);
  EXPECT_EQ(ParseOptions("swap:auto,swap_slowdown:0.5")->arena.swap_slowdown, 5000u);
  EXPECT_THAT(ErrorOf("swap_limit:1GiB,swap:off"), HasSubstr("add swap:auto"));
  EXPECT_THAT(ErrorOf("swap_limit:1GiB,swap_slowdown:5%"), HasSubstr("give one of them"));
  EXPECT_THAT(ErrorOf("swap_limit:1MiB"), HasSubstr("less than one chunk of 2097152 bytes"));
  for (const char* const bad : {"0", "0%", "-1", "nan", "5%%", "1001%", "", "x"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("swap_slowdown:", bad)), HasSubstr("such as '5%'")) << bad;
  }
  EXPECT_THAT(ErrorOf("swap:auto,plan:auto"), HasSubstr("leave one of them out"));
  EXPECT_THAT(ErrorOf("swap:watch,plan:auto"), HasSubstr("leave one of them out"));
  EXPECT_THAT(ErrorOf("plan_file:z"), HasSubstr("plan is off: add plan:auto"));
  EXPECT_THAT(ErrorOf("swap:watch,host_limit:1GiB"), HasSubstr("add swap:auto"));
  EXPECT_THAT(ErrorOf("swap:on"), HasSubstr("'auto', 'watch' or 'off'"));
}

TEST(Options, ChunksAreSmallWhereThatLetsMoreLeaveAndCostsNothing) {
  const auto chunk = [](const char* text) { return ParseOptions(text)->arena.chunk_bytes; };
  EXPECT_EQ(chunk("device:cpu,memory:1GiB"), 2 * kMiB) << "nothing leaves";
  EXPECT_EQ(chunk("swap:auto"), 2 * kMiB) << "a GPU has a smallest chunk";
  EXPECT_EQ(chunk("device:cpu,memory:1GiB,swap:auto"), 64 * kKiB);
  EXPECT_EQ(chunk("device:cpu,memory:1GiB,swap:watch"), 64 * kKiB);
  EXPECT_EQ(chunk("device:cpu,memory:1GiB,swap:auto,chunk:4MiB"), 4 * kMiB) << "as it is said";
  EXPECT_EQ(chunk("device:cpu,memory:2GiB,swap:auto"), 128 * kKiB) << "16384 of them at the most";
  EXPECT_EQ(chunk("device:cpu,memory:64GiB,limit:1GiB,swap:auto"), 64 * kKiB);
  EXPECT_EQ(chunk("device:cpu,memory:4096GiB,swap:auto"), 2 * kMiB);
  EXPECT_THAT(chunk("device:cpu,swap:auto"), AllOf(Ge(64 * kKiB), Le(2 * kMiB)));
}

TEST(Options, GpusHaveADriverAndPeers) {
  const auto options = ParseOptions("device:2,driver:/a/libcuda.so.1,peers:0+1");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->driver, "/a/libcuda.so.1");
  EXPECT_EQ(options->peers, (std::vector<int>{0, 1}));
  EXPECT_THAT(FormatOptions(*options), HasSubstr("driver:/a/libcuda.so.1,peers:0+1"));
}

TEST(Options, WhatIsWrittenIsReadBackTheSame) {
  for (const char* text :
       {"", "device:3", "peers:1", "device:0,peers:3+1", "device:cpu",
        "device:cpu,memory:1GiB,limit:512MiB", "preallocate:on,stitch:off", "chunk:64KiB",
        "retry_ms:600000", "log:x", "nvtx:on", "plan:auto,plan_file:z", "swap:auto,host_limit:1MiB",
        "swap:auto,swap_limit:64MiB", "swap:watch", "swap:auto,swap_slowdown:12.5%",
        "device:cpu,memory:3GiB,limit:1GiB,preallocate:on,chunk:1GiB,stitch:off,"
        "retry_ms:1,log:y,log_events:7"}) {
    const auto options = ParseOptions(text);
    ASSERT_TRUE(options.ok()) << options.status();
    const std::string written = FormatOptions(*options);
    const auto again = ParseOptions(written);
    ASSERT_TRUE(again.ok()) << written << ": " << again.status();
    EXPECT_EQ(FormatOptions(*again), written);
    EXPECT_EQ(again->device, options->device);
    EXPECT_EQ(again->peers, options->peers);
    EXPECT_EQ(again->memory, options->memory);
    EXPECT_EQ(again->log, options->log);
    EXPECT_EQ(again->log_events, options->log_events);
    EXPECT_EQ(again->arena.limit, options->arena.limit);
    EXPECT_EQ(again->arena.preallocate, options->arena.preallocate);
    EXPECT_EQ(again->arena.chunk_bytes, options->arena.chunk_bytes);
    EXPECT_EQ(again->arena.stitch, options->arena.stitch);
    EXPECT_EQ(again->arena.retry, options->arena.retry);
  }
}

TEST(Options, AnUnknownKeyIsNamedAndTheKnownOnesListed) {
  const std::string error = ErrorOf("limti:1GiB");
  for (const char* part : {"'limti'", "device", "memory", "limit", "preallocate", "chunk", "stitch",
                           "retry_ms", "log", "log_events", "nvtx", "driver", "peers"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_THAT(ErrorOf("limit"), HasSubstr("limit"));
  EXPECT_THAT(ErrorOf("=5"), HasSubstr("'=5'"));
}

TEST(Options, AKeyGivenTwiceIsRefused) {
  EXPECT_THAT(ErrorOf("limit:1GiB,limit:2GiB"), HasSubstr("'limit' is given twice"));
}

TEST(Options, EntriesAreListedWithThoseTheyImplyAndNotJudged) {
  const auto entries = [](const char* text) {
    return absl::StrJoin(OptionEntries(text), ",", absl::PairFormatter("="));
  };
  EXPECT_EQ(entries(" log : /a:b ,limti,, limit:1"), "log=/a:b,limti=,limit=1");
  EXPECT_EQ(entries("swap_limit:1GiB,stitch:off"), "swap_limit=1GiB,stitch=off,swap=auto");
  EXPECT_EQ(entries("swap_slowdown:5%"), "swap_slowdown=5%,swap=auto");
  EXPECT_EQ(entries("swap:off,swap_limit:1GiB"), "swap=off,swap_limit=1GiB");
}

TEST(Options, AFrontHasOptionsOfItsOwn) {
  constexpr char kOwn[] = "front:thimble|bfc,loud:on|off,";
  const auto error = [&](const char* text) { return MessageOf(ParseOptions(text, kOwn).status()); };
  EXPECT_TRUE(ParseOptions("front:bfc,limit:1GiB,loud:off", kOwn).ok());
  EXPECT_THAT(error("front:best"), HasSubstr("option 'front': 'best' is not 'thimble' or 'bfc'"));
  EXPECT_THAT(error("front"), HasSubstr("option 'front': '' is not"));
  EXPECT_THAT(error("loud:on,loud:on"), HasSubstr("'loud' is given twice"));
  EXPECT_THAT(error("laud:on"), EndsWith(", front, loud"));
  EXPECT_THAT(error("front:bfc,limit:much"), HasSubstr("'much'"));
  EXPECT_THAT(error("front:bfc,plan_file:z"), HasSubstr("add plan:auto"));
  EXPECT_THAT(ErrorOf("front:bfc"), HasSubstr("unknown option 'front'"));
}

TEST(Options, ADeviceGetsWhatItsFrontDecidesAndFilesOfItsOwn) {
  constexpr char kConf[] = "front:bfc, limit : 4GiB,log:/a:b,retry_ms:9,plan:auto,plan_file:/d";
  const auto options = [&](const char* decided, unsigned index) {
    return DeviceOptions(kConf, "front:thimble|bfc", decided, index).value();
  };
  EXPECT_EQ(options("", 0), "limit:4GiB,log:/a:b,retry_ms:9,plan:auto,plan_file:/d");
  EXPECT_EQ(options("device:2,limit:1GiB,retry_ms:,driver:/e", 2),
            "device:2,limit:1GiB,driver:/e,log:/a:b.2,plan:auto,plan_file:/d.2");
  EXPECT_THAT(MessageOf(DeviceOptions(kConf, "", "", 0).status()), HasSubstr("'front'"));
}

struct BadValue {
  const char* key;
  const char* value;
};
class BadOption : public testing::TestWithParam<BadValue> {};
INSTANTIATE_TEST_SUITE_P(
    All, BadOption,
    testing::Values(BadValue{"device", "gpu"}, BadValue{"device", "-1"}, BadValue{"device", "1x"},
                    BadValue{"memory", "much"}, BadValue{"memory", "0"}, BadValue{"limit", "-4"},
                    BadValue{"limit", "0"}, BadValue{"limit", "99999999999999999999"},
                    BadValue{"preallocate", "yes"}, BadValue{"preallocate", "ON"},
                    BadValue{"chunk", "3MiB"}, BadValue{"chunk", "4KiB"}, BadValue{"chunk", "2GiB"},
                    BadValue{"stitch", "1"}, BadValue{"retry_ms", "-1"},
                    BadValue{"retry_ms", "600001"}, BadValue{"retry_ms", "1s"}, BadValue{"log", ""},
                    BadValue{"log_events", "0"}, BadValue{"log_events", "some"},
                    BadValue{"driver", ""}, BadValue{"peers", ""}, BadValue{"peers", "1+"},
                    BadValue{"peers", "1;2"}, BadValue{"peers", "-1"}));
TEST_P(BadOption, IsRefusedWithKeyAndValue) {
  const auto [key, value] = GetParam();
  const std::string error = ErrorOf(std::string(key) + ":" + value);
  EXPECT_THAT(error, HasSubstr("'" + std::string(key) + "'"));
  EXPECT_THAT(error, HasSubstr("'" + std::string(value) + "'"));
}

TEST(Options, ContradictionsAreRefused) {
  EXPECT_THAT(ErrorOf("device:0,memory:1GiB"), HasSubstr("'memory'"));
  const std::string error = ErrorOf("device:cpu,memory:1GiB,limit:2GiB");
  EXPECT_THAT(error, HasSubstr("limit:2147483648"));
  EXPECT_THAT(error, HasSubstr("memory:1073741824"));
  EXPECT_THAT(ErrorOf("device:cpu,driver:x"), HasSubstr("'driver'"));
  EXPECT_THAT(ErrorOf("device:cpu,peers:1"), HasSubstr("'peers'"));
  EXPECT_THAT(ErrorOf("device:1,peers:0+1"), HasSubstr("peers:0+1"));
}

// P3, in pairs: any two good values together are accepted, in either order.
TEST(Options, GoodValuesGoTogether) {
  const std::vector<std::string> good = {"device:cpu", "limit:256MiB", "preallocate:on",
                                         "chunk:1MiB", "stitch:off",   "retry_ms:10",
                                         "log:l"};
  for (const std::string& a : good) {
    for (const std::string& b : good) {
      if (a == b) continue;
      EXPECT_TRUE(ParseOptions(a + "," + b).ok()) << a << "," << b;
    }
  }
}

}  // namespace
}  // namespace thimble
