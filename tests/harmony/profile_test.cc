// Profiles: what is read, and one clear message for each error.
#include "allocator/offline/harmony/profile.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/offline/harmony/costs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::harmony {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] =
    "ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,fwd_mem_bytes,bwd_mem_bytes,x_elems\n";

std::string Message(const std::string& text) {
  const auto profile = ParseProfile(text, "p.csv");
  return profile.ok() ? "" : std::string(profile.status().message());
}
std::string Rows(const std::string& rows) { return Message(kHeader + rows); }

TEST(Profile, IsReadAndInterpolated) {
  const auto profile = ParseProfile(absl::StrCat(kHeader,
                                                 "1,0,100,1,3,0.5,1000,2000,10\n"
                                                 "3,0,100,2,6,0.5,2000,5000,30\n"
                                                 "\n"
                                                 "1,1,0,1,2,0,50,60,5\r\n"
                                                 "3,1,0,1,2,0,150,180,15\n"),
                                    "p.csv");
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->layer_count(), 2);
  EXPECT_EQ(profile->layers[0].input_bytes, 40);
  EXPECT_EQ(profile->layers[1].input_bytes, 20);
  const Costs costs(*profile, 8);
  EXPECT_EQ(costs.largest(), 3);
  EXPECT_DOUBLE_EQ(costs.Seconds(Pass::kForward, 2, {0, 0}), 1.5);
  EXPECT_DOUBLE_EQ(costs.BackwardSeconds(2, {0, 1}), 4.5 - 1.5 + 1);
  // The input between the two layers counts once, as the first layer's output.
  EXPECT_DOUBLE_EQ(costs.PeakBytes(Pass::kBackward, 3, {0, 1}), 5000 + 180 - 60);
  EXPECT_DOUBLE_EQ(costs.WorkBytes(Pass::kBackward, 3, {0, 1}), 5120 - 200 - 120);
  EXPECT_DOUBLE_EQ(costs.WeightBytes({0, 1}), 100);
  EXPECT_DOUBLE_EQ(costs.InputBytes(3, 2), 0);
}

TEST(Profile, BuffersAndForwardOnlySizesAreRead) {
  std::string header = kHeader;
  header.insert(header.size() - 1, ",buffer_bytes");
  const auto profile = ParseProfile(absl::StrCat(header,
                                                 "1,0,100,1,3,0.5,1001,2000,10,7\n"
                                                 "4,0,100,2,6,0.5,2002,5001,40,7\n"
                                                 "6,0,100,4,,0.5,3000,,60,7\n"),
                                    "p.csv");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Costs costs(*profile, 8);
  EXPECT_EQ(costs.WeightBytes({0, 0}), 107);
  EXPECT_EQ(costs.largest(Pass::kForward), 6);
  EXPECT_EQ(costs.largest(Pass::kBackward), 4);
  EXPECT_EQ(costs.largest(), 4);
  EXPECT_EQ(costs.Seconds(Pass::kForward, 5, {0, 0}), 3);
  EXPECT_EQ(costs.PeakBytes(Pass::kForward, 2, {0, 0}), 1334);  // whole bytes of 1334.67
  EXPECT_THAT(Rows("1,0,1,1,,1,1,,1\n"), HasSubstr("p.csv: has no backward"));
  EXPECT_THAT(Rows("1,0,1,1,,1,1,1,1\n"), HasSubstr("'' is not a valid bwd_gpu_s"));
  EXPECT_THAT(Rows("1,0,1,1,,1,1,,1\n1,1,1,1,1,1,1,1,1\n"),
              HasSubstr("microbatch size 1 has a backward for 1 layers of 2"));
}

TEST(Profile, NamesLineValueAndRemedy) {
  EXPECT_THAT(Message("a,b\n"), HasSubstr("p.csv:1: 'a,b' is not the header: write ubatch,layer"));
  EXPECT_THAT(Message(""), HasSubstr("p.csv: has no layers"));
  EXPECT_THAT(Rows("1,0,1\n"), HasSubstr("p.csv:2: '1,0,1' has 3 fields, not 9"));
  EXPECT_THAT(Rows("0,0,1,1,1,1,1,1,1\n"), HasSubstr("p.csv:2: '0' is not a valid ubatch"));
  EXPECT_THAT(Rows("1,x,1,1,1,1,1,1,1\n"),
              HasSubstr("'x' is not a valid layer: write a whole number"));
  EXPECT_THAT(Rows("1,0.5,1,1,1,1,1,1,1\n"), HasSubstr("'0.5' is not a valid layer"));
  EXPECT_THAT(Rows("1,0,-1,1,1,1,1,1,1\n"), HasSubstr("'-1' is not a valid weight_bytes"));
  EXPECT_THAT(Rows("1,0,1,nan,1,1,1,1,1\n"), HasSubstr("'nan' is not a valid fwd_gpu_s"));
  EXPECT_THAT(Rows("1,0,1,2,1,1,1,1,1\n"), HasSubstr("'1' is less than fwd_gpu_s, 2"));
  EXPECT_THAT(Rows("1,0,1,1,1,1,1,1,1\n1,0,1,1,1,1,1,1,1\n"),
              HasSubstr("of line 2: write each once"));
  EXPECT_THAT(Rows("1,0,1,1,1,1,1,1,1\n2,0,9,1,1,1,1,1,2\n"),
              HasSubstr("has a different weight_bytes than line 2, 1"));
  EXPECT_THAT(Rows("1,0,1,1,1,1,1,1,1\n2,0,1,1,1,1,1,1,1\n"),
              HasSubstr("different x_elems per sample than line 2: write 2"));
  EXPECT_THAT(Rows("1,1,1,1,1,1,1,1,1\n"), HasSubstr("microbatch size 1 has no line for layer 0"));
  EXPECT_THAT(Rows("1,0,1,1,1,1,1,1,1\n1,1,1,1,1,1,1,1,1\n2,0,1,1,1,1,1,1,2\n"),
              HasSubstr("microbatch size 2 has no line for layer 1"));
}

TEST(Profile, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(std::string(ReadProfileFile("/no/such.csv").status().message()),
              HasSubstr("/no/such.csv"));
}

}  // namespace
}  // namespace thimble::harmony
