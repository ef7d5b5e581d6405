// JAX's variables and THIMBLE_CONF become options of an arena, or one sentence that names the value
// and the remedy.
#include "xla_plugin/driver_front/settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::xla {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kDevice = 80'000'000'000;

std::string OptionsOf(const std::string& conf, const JaxOptions& jax = {}, int ordinal = 0) {
  Settings settings;
  EXPECT_EQ(settings.Read(conf, jax), "");
  EXPECT_EQ(settings.CheckFor(kDevice), "");
  return settings.OptionsFor(ordinal, kDevice, "/d/libcuda.so.1", {});
}

std::string ErrorOf(const std::string& conf, const JaxOptions& jax = {}) {
  Settings settings;
  const std::string error = settings.Read(conf, jax);
  return error.empty() ? settings.CheckFor(kDevice) : error;
}

TEST(Settings, NothingSetMeansToGrowAsFarAsTheDeviceGoes) {
  EXPECT_EQ(OptionsOf(""), "device:0,driver:/d/libcuda.so.1");
  Settings settings;
  EXPECT_EQ(settings.Read("", {}), "");
  EXPECT_EQ(settings.LimitFor(kDevice), kDevice);
  EXPECT_FALSE(settings.cumemalloc_from_driver());
}

TEST(Settings, AFractionIsALimit) {
  EXPECT_THAT(OptionsOf("", {0.5, false}), EndsWith(",limit:40000000000"));
  EXPECT_THAT(OptionsOf("", {1, false}), EndsWith(",limit:80000000000"));
}

TEST(Settings, PreallocationTakesTheFractionOrWhatJaxTakes) {
  EXPECT_THAT(OptionsOf("", {0.5, true}), EndsWith(",limit:40000000000,preallocate:on"));
  EXPECT_THAT(OptionsOf("", {0, true}), EndsWith(",limit:60000000000,preallocate:on"));
  EXPECT_THAT(OptionsOf("preallocate:on"), EndsWith(",limit:60000000000,preallocate:on"));
  EXPECT_THAT(OptionsOf("preallocate:on,limit:1GiB"), Not(HasSubstr("60000000000")));
  EXPECT_THAT(OptionsOf("preallocate:off", {0, true}), Not(HasSubstr("preallocate:on")))
      << "THIMBLE_CONF is the more special of the two";
}

TEST(Settings, ALimitIsKnownInEverySpelling) {
  for (const char* limit : {"1610612736", "1572864KiB", "1536MiB", "1.5GiB"}) {
    Settings settings;
    EXPECT_EQ(settings.Read(std::string("limit:") + limit, {}), "");
    EXPECT_EQ(settings.LimitFor(kDevice), 1610612736u) << limit;
  }
}

TEST(Settings, TheArenasOwnOptionsPassThrough) {
  EXPECT_THAT(OptionsOf(" stitch:off , retry_ms:10"), EndsWith(",stitch:off,retry_ms:10"));
}

TEST(Settings, PeersAndLogsAreEachDevicesOwn) {
  Settings settings;
  EXPECT_EQ(settings.Read("log:/tmp/a.log,plan:auto,plan_file:/tmp/p", {}), "");
  EXPECT_EQ(settings.OptionsFor(2, kDevice, "d", {0, 1}),
            "device:2,driver:d,peers:0+1,log:/tmp/a.log.2,plan:auto,plan_file:/tmp/p.2");
  EXPECT_THAT(OptionsOf("log:/tmp/a.log"), EndsWith(",log:/tmp/a.log"));
}

TEST(Settings, PlainAllocationsCanStayWithTheDriver) {
  Settings settings;
  EXPECT_EQ(settings.Read("cumemalloc:driver,stitch:off", {}), "");
  EXPECT_TRUE(settings.cumemalloc_from_driver());
  EXPECT_EQ(settings.OptionsFor(0, kDevice, "d", {}), "device:0,driver:d,stitch:off");
  EXPECT_EQ(settings.CheckFor(kDevice), "");
}

TEST(Settings, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf("limti:1GiB"),
              AllOf(HasSubstr("'limti'"), HasSubstr("limit"), HasSubstr(", cumemalloc")));
  EXPECT_THAT(ErrorOf("limit:much"), AllOf(HasSubstr("'limit'"), HasSubstr("'much'")));
  EXPECT_THAT(ErrorOf("limit"), HasSubstr("'limit'"));
  EXPECT_THAT(ErrorOf("stitch:off,stitch:on"), HasSubstr("'stitch' is given twice"));
  EXPECT_THAT(ErrorOf("limit:90000000000"), HasSubstr("limit:90000000000 is more than"));
  EXPECT_THAT(ErrorOf("cumemalloc:host"), HasSubstr("'host' is not 'arena' or 'driver'"));
  EXPECT_THAT(ErrorOf("cumemalloc:arena,cumemalloc:arena"), HasSubstr("given twice"));
  for (const char* key : {"device:cpu", "driver:x", "peers:1"}) {
    EXPECT_THAT(ErrorOf(key), HasSubstr("JAX's to choose"));
  }
  EXPECT_THAT(ErrorOf("swap:auto"), HasSubstr("none of them can be moved: leave it out"));
  EXPECT_THAT(ErrorOf("swap_limit:1GiB"), HasSubstr("none of them can be moved: leave it out"));
  EXPECT_EQ(ErrorOf("swap:off"), "");
  EXPECT_EQ(ErrorOf("swap:watch"), "") << "`thimble run` says it for TensorFlow";
  EXPECT_THAT(ErrorOf("", {1.5, false}), HasSubstr("XLA_CLIENT_MEM_FRACTION is 1.5"));
  EXPECT_THAT(ErrorOf("", {-0.5, false}), HasSubstr("XLA_CLIENT_MEM_FRACTION is -0.5"));
  EXPECT_THAT(ErrorOf("limit:1GiB", {0.5, false}), HasSubstr("unset one"));
}

}  // namespace
}  // namespace thimble::xla
