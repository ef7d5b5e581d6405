#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/offline/plan/csv.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlanCsv, ReadsBuffersWithTheirIds) {
  const auto named = ParseProblemCsv("id,lower,upper,size\n7,-3,12,4096\nx/y,0,1,1\n", "p");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->ids, ElementsAre("7", "x/y"));
  ASSERT_EQ(named->problem.buffers.size(), 2u);
  EXPECT_EQ(named->problem.buffers[0].lower, -3);
  EXPECT_EQ(named->problem.buffers[0].upper, 12);
  EXPECT_EQ(named->problem.buffers[0].size, 4096);
}

TEST(PlanCsv, TheHeaderSaysTheOrderAndMayBeMissing) {
  const auto turned = ParseProblemCsv("size,id,upper,lower\n4,a,2,1\n", "p");
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_EQ(turned->ids[0], "a");
  EXPECT_EQ(turned->problem.buffers[0].lower, 1);
  EXPECT_EQ(turned->problem.buffers[0].size, 4);
  const auto bare = ParseProblemCsv("a,1,2,4\n", "p");
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->problem.buffers[0].size, 4);
}

TEST(PlanCsv, SkipsEmptyLinesBlanksAndCarriageReturns) {
  const auto named = ParseProblemCsv("\r\nid, lower, upper, size\r\n\n a ,1 , 2,\t3\r\n  \n", "p");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->ids, ElementsAre("a"));
}

TEST(PlanCsv, EmptyTextHasNoBuffers) {
  const auto named = ParseProblemCsv("", "p");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_TRUE(named->ids.empty());
}

struct BadLine {
  const char* text;
  const char* place;
  const char* offender;
  const char* remedy;
};

class PlanCsvRefuses : public ::testing::TestWithParam<BadLine> {};

TEST_P(PlanCsvRefuses, WithPlaceOffenderAndRemedy) {
  const BadLine& bad = GetParam();
  const auto named = ParseProblemCsv(bad.text, "p.csv");
  EXPECT_EQ(named.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(named.status().message()),
              AllOf(HasSubstr(absl::StrCat("p.csv:", bad.place, ": ")), HasSubstr(bad.offender),
                    HasSubstr(bad.remedy)));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, PlanCsvRefuses,
    ::testing::Values(
        BadLine{"a,1,2\n", "1", "'a,1,2'", "has 3 fields, not 4: write 'id,lower,upper,size'"},
        BadLine{"id,lower,upper,size\na,1,2,3,4\n", "2", "'a,1,2,3,4'", "has 5 fields"},
        BadLine{"id,lower,upper,length\n", "1", "'size'", "is missing in the header"},
        BadLine{"id,lower,upper,size\n\nid,lower,upper,size\n", "3", "'lower'",
                "is not a valid lower"},
        BadLine{"a,x,2,3\n", "1", "'x'", "is not a valid lower: write a whole number of 64 bits"},
        BadLine{"a,1,2.5,3\n", "1", "'2.5'", "is not a valid upper"},
        BadLine{"a,1,9223372036854775808,3\n", "1", "'9223372036854775808'",
                "is not a valid upper"},
        BadLine{"a,1,2,\n", "1", "''", "is not a valid size"},
        BadLine{"a,5,5,3\n", "1", "'5'", "is not after lower, 5: upper is excluded"},
        BadLine{"a,5,4,3\n", "1", "'4'", "is not after lower, 5"},
        BadLine{"a,1,2,0\n", "1", "'0'", "write a number from 1 to 2^46"},
        BadLine{"a,1,2,-8\n", "1", "'-8'", "write a number from 1 to 2^46"},
        BadLine{"a,1,2,70368744177665\n", "1", "'70368744177665'", "from 1 to 2^46"},
        BadLine{",1,2,3\n", "1", "''", "is not an id: give every buffer one"},
        BadLine{"a,1,2,3\nb,1,2,3\na,4,5,6\n", "3", "'a'", "is also the id of line 1"},
        BadLine{"\x01\xff\n", "1", "'\\x01\\xff'", "has 1 fields"}));

TEST(PlanCsv, RefusesSizesWhoseSumIsTooLarge) {
  std::string text;
  for (int i = 0; i <= 16384; ++i) absl::StrAppend(&text, i, ",0,1,70368744177664\n");
  EXPECT_THAT(std::string(ParseProblemCsv(text, "p").status().message()),
              AllOf(HasSubstr("p:16385: '70368744177664'"), HasSubstr("sum of all sizes")));
}

TEST(PlanCsv, PlansAreWrittenInTheOrderOfTheProblem) {
  const std::string path = ::testing::TempDir() + "/plan.csv";
  ASSERT_TRUE(WritePlanFile({"b", "a"}, {{0, 4096}, 5000, 5000}, path).ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "id,offset\nb,0\na,4096\n");
}

TEST(PlanCsv, FilesThatCannotBeUsedAreNamed) {
  const auto missing = ReadProblemFile("/nowhere/p.csv");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("'/nowhere/p.csv'"));
  EXPECT_EQ(ReadProblemFile("/").status().code(), absl::StatusCode::kUnavailable);
  const absl::Status unwritable = WritePlanFile({}, {}, "/nowhere/plan.csv");
  EXPECT_EQ(unwritable.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(unwritable.message()), HasSubstr("'/nowhere/plan.csv'"));
}

}  // namespace
}  // namespace thimble::plan
