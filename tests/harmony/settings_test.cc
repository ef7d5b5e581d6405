// Parsing of settings, and what a report refuses.
#include "allocator/offline/harmony/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

using ::testing::HasSubstr;

using Values = std::vector<std::pair<std::string, std::string>>;

std::string Message(const std::string& key, const std::string& value) {
  return std::string(ReadSettings({{key, value}}).status().message());
}

TEST(Settings, AreRead) {
  const auto settings = ReadSettings({{"gpus", "2"},
                                      {"memory", "10GiB"},
                                      {"batch", "32"},
                                      {"mode", "pp"},
                                      {"rules", "harmony"},
                                      {"prefetch", "on"},
                                      {"packers", "published"},
                                      {"keep", "off"},
                                      {"resident", "off"},
                                      {"seconds", "1.5"},
                                      {"swap_limit", "1GiB"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->gpus, 2);
  EXPECT_EQ(settings->memory_bytes, 10 * kGiBBytes);
  EXPECT_EQ(settings->batch, 32);
  EXPECT_EQ(settings->mode, Mode::kPipeline);
  EXPECT_EQ(settings->rules, Rules::kHarmony);
  EXPECT_TRUE(settings->prefetch);
  EXPECT_EQ(settings->packers, PackersOfTheRuns());
  EXPECT_FALSE(settings->keep || settings->resident);
  EXPECT_EQ(settings->seconds, 1.5);
  EXPECT_EQ(settings->swap_limit, kGiBBytes);
  EXPECT_EQ(ReadSettings({{"swap_limit", "off"}, {"mode", "auto"}})->swap_limit, 0);
  EXPECT_EQ(ReadSettings(Values{{"packers", "all"}})->packers, DefaultPackers());
  EXPECT_EQ(ReadSettings(Values{{"packers", "greedy_addx+reuse"}})->packers,
            (PackerList{Packer::kGreedyAddx, Packer::kReuse}));
}

TEST(Settings, AreRefusedWithARemedy) {
  EXPECT_THAT(Message("gpus", "9"), HasSubstr("gpus '9' is not a whole number from 1 to 8"));
  EXPECT_THAT(Message("batch", "0"), HasSubstr("batch '0'"));
  EXPECT_THAT(Message("memory", "much"), HasSubstr("'much'"));
  EXPECT_THAT(Message("memory", "0"), HasSubstr("memory '0' is not from 1 byte"));
  EXPECT_THAT(Message("mode", "tp"), HasSubstr("mode 'tp' is not known: write dp, pp or auto"));
  EXPECT_THAT(Message("rules", "x"), HasSubstr("write thimble or harmony"));
  EXPECT_THAT(Message("prefetch", "1"), HasSubstr("write on or off"));
  EXPECT_THAT(Message("keep", "no"), HasSubstr("keep 'no' is not known: write on or off"));
  EXPECT_THAT(Message("resident", ""), HasSubstr("write on or off"));
  EXPECT_THAT(Message("packers", "greedy+x"),
              HasSubstr("packers 'x' is not known: write published, "
                        "all, or some of greedy, greedy_addx, "));
  EXPECT_THAT(Message("packers", "reuse"), HasSubstr("'reuse' has no backward packs to reuse"));
  EXPECT_THAT(Message("seconds", "-1"), HasSubstr("seconds '-1' is not a number from 0 to 3600"));
  EXPECT_THAT(Message("speed", "1"), HasSubstr("'speed' is not a setting: write gpus, memory"));
}

TEST(Report, NamesTheLayerThatDoesNotFit) {
  Profile profile = EqualLayers(20, 0.001, 1e6, 1e3, 1e6);
  profile.layers[17].weight_bytes = 6e9;
  for (Sample& sample : profile.samples) {
    sample.forward_bytes[17] += 6e9;
    sample.backward_bytes[17] += 12e9;
  }
  Settings settings;
  settings.batch = 4;
  for (const Rules rules : {Rules::kThimble, Rules::kHarmony}) {
    settings.rules = rules;
    const auto report = MakeReport(profile, PublishedServer(2, 10 * kGiBBytes), settings);
    EXPECT_EQ(report.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(report.status().message()),
                HasSubstr("layer 17 needs 11.18 GiB in backward at microbatch 1, memory is 10"));
  }
}

TEST(Report, RefusesABatchThatCannotBeSplit) {
  const Profile profile = EqualLayers(4, 0.001, 1e6, 1e3, 1e6);
  Settings settings;
  settings.batch = 5;
  settings.mode = Mode::kDataParallel;
  const auto report = MakeReport(profile, PublishedServer(2, 1e9), settings);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("write 6, or mode pp"));
  settings.mode.reset();
  settings.seconds = 0.05;
  EXPECT_TRUE(MakeReport(profile, PublishedServer(2, 1e9), settings).ok());
}

TEST(Report, HostMemoryIsALimitToo) {
  const Profile profile = EqualLayers(4, 0.001, 1e8, 1e3, 1e6);
  Settings settings;
  settings.batch = 4;
  settings.seconds = 0.05;
  Server server = PublishedServer(1, 1e9);
  server.host_bytes = 1e9;
  const auto report = MakeReport(profile, server, settings);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("of host memory"));
}

}  // namespace
}  // namespace thimble::harmony
