#include "allocator/offline/logs/trace_text.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseTrace(text, "t.trace").status().message());
}

TEST(TraceText, AllocationKeepsItsFieldsAndTheFreeRepeatsThem) {
  const auto trace = ParseTrace("A 17 4096 3 99\nF 17\n", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->ops.size(), 2u);
  EXPECT_EQ(trace->ops[0].kind, TraceOpKind::kAllocate);
  EXPECT_EQ(trace->ops[1].kind, TraceOpKind::kFree);
  for (const TraceOp& op : trace->ops) {
    EXPECT_EQ(op.id, 0u);
    EXPECT_EQ(op.bytes, 4096u);
    EXPECT_EQ(op.stream, StreamId{3});
    EXPECT_EQ(op.key, 99u);
  }
}

TEST(TraceText, IdsAreDenseAndReusedAfterAFree) {
  const auto trace = ParseTrace("A 1000 1\nA 7 1\nF 1000\nA 1000 1\nA 8 1\n", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ids, 3u);
  EXPECT_EQ(trace->ops[3].id, trace->ops[0].id);
  EXPECT_EQ(trace->ops[4].id, 2u);
}

TEST(TraceText, MaxLiveIsTheLargestSumOfRequestedBytes) {
  const auto trace = ParseTrace("A 1 100\nA 2 50\nF 1\nA 3 60\nF 2\nF 3\n", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->max_live_bytes, 150u);
}

TEST(TraceText, SkipsCommentsEmptyLinesAndCarriageReturns) {
  const auto trace = ParseTrace("# recorded\n\n  \t\nA 1 0\r\nS\n#\nF 1", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->ops.size(), 3u);
  EXPECT_EQ(trace->ops[1].kind, TraceOpKind::kStep);
}

TEST(TraceText, AnAccessKeepsItsPlaceItsTimeAndItsBlocks) {
  const auto trace =
      ParseTrace("A 7 8\nA 9 8\nO MatMul 0.001 r:7,7 w:9\nF 7\nO grad/Relu 4.5e-06 r: w:-\n", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ops.size(), 3u);
  ASSERT_EQ(trace->accesses.size(), 2u);
  const TraceAccess& first = trace->accesses[0];
  EXPECT_EQ(first.at, 2u);
  EXPECT_EQ(first.name, "MatMul");
  EXPECT_EQ(first.ns, 1000000);
  EXPECT_THAT(first.reads, ElementsAre(0, 0));
  EXPECT_THAT(first.writes, ElementsAre(1));
  const TraceAccess& second = trace->accesses[1];
  EXPECT_EQ(second.at, 3u);
  EXPECT_EQ(second.name, "grad/Relu");
  EXPECT_EQ(second.ns, 4500);
  EXPECT_THAT(second.reads, IsEmpty());
  EXPECT_THAT(second.writes, IsEmpty());
}

TEST(TraceText, BlocksLiveAtTheEndStayLive) {
  const auto trace = ParseTrace("A 1 8\nA 2 8\nF 1\n", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ops.size(), 3u);
}

TEST(TraceText, EmptyTextIsAnEmptyTrace) {
  const auto trace = ParseTrace("", "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(trace->ops.empty());
  EXPECT_EQ(trace->ids, 0u);
}

struct BadLine {
  const char* text;
  const char* place;
  const char* offender;
  const char* remedy;
};

class TraceTextRefuses : public ::testing::TestWithParam<BadLine> {};

TEST_P(TraceTextRefuses, WithPlaceOffenderAndRemedy) {
  const BadLine& bad = GetParam();
  const auto trace = ParseTrace(bad.text, "t.trace");
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(bad.text), AllOf(HasSubstr(absl::StrCat("t.trace:", bad.place, ": ")),
                                       HasSubstr(bad.offender), HasSubstr(bad.remedy)));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, TraceTextRefuses,
    ::testing::Values(
        BadLine{"A 1 8\nF 2\n", "2", "'2'", "is not live: remove the line"},
        BadLine{"A 1 8\nF 1\nF 1\n", "3", "'1'", "is not live"},
        BadLine{"A 5 8\n\nA 5 8\n", "3", "'5'", "is live since line 1: free it first"},
        BadLine{"A x 8\n", "1", "'x'", "is not an id: write a decimal number"},
        BadLine{"A -1 8\n", "1", "'-1'", "is not an id"},
        BadLine{"A 1 8.5\n", "1", "'8.5'", "is not a size: write a decimal number"},
        BadLine{"A 1 0x10\n", "1", "'0x10'", "is not a size"},
        BadLine{"A 1 18446744073709551616\n", "1", "'18446744073709551616'", "below 2^64"},
        BadLine{"A 1 9223372036854775809\n", "1", "'9223372036854775809'", "more than 2^63"},
        BadLine{"A 1 9223372036854775808\nA 2 1\n", "2", "'1'", "live sum over 2^63"},
        BadLine{"A 1 8 q\n", "1", "'q'", "is not a stream"},
        BadLine{"A 1 8 0 q\n", "1", "'q'", "is not a key"},
        BadLine{"A 1 8 0 0 0\n", "1", "'0'", "one field too many: write 'A <id> <bytes>"},
        BadLine{"A 1\n", "1", "'A 1'", "lacks a size: write 'A <id> <bytes>"},
        BadLine{"A\n", "1", "'A'", "lacks an id"},
        BadLine{"F\n", "1", "'F'", "lacks an id: write 'F <id>'"},
        BadLine{"A 1 8\nF 1 2\n", "2", "'2'", "one field too many: write 'F <id>'"},
        BadLine{"S 1\n", "1", "'1'", "one field too many: write 'S' alone"},
        BadLine{"O\n", "1", "'O'", "lacks an op: write 'O <op> <seconds> r:"},
        BadLine{"O MatMul\n", "1", "'O MatMul'", "lacks its seconds: write 'O <op>"},
        BadLine{"O MatMul r: w:\n", "1", "'r:'",
                "is not a duration: write seconds from 0 to 86400"},
        BadLine{"O MatMul -1 r: w:\n", "1", "'-1'", "is not a duration"},
        BadLine{"O MatMul nan r: w:\n", "1", "'nan'", "is not a duration"},
        BadLine{"O MatMul 86401 r: w:\n", "1", "'86401'", "is not a duration"},
        BadLine{"O MatMul 1\n", "1", "'O MatMul 1'", "lacks r:"},
        BadLine{"O MatMul 1 w: r:\n", "1", "'w:'", "is not r:: write 'O <op>"},
        BadLine{"O MatMul 1 r:\n", "1", "'O MatMul 1 r:'", "lacks w:"},
        BadLine{"A 1 8\nO MatMul 1 r:1,2 w:\n", "2", "'2'", "is not live: remove it, or add"},
        BadLine{"A 1 8\nF 1\nO MatMul 1 r: w:1\n", "3", "'1'", "is not live"},
        BadLine{"A 1 8\nO MatMul 1 r:1, w:\n", "2", "'r:1,'", "is not a list of ids: write"},
        BadLine{"A 1 8\nO MatMul 1 r:,1 w:\n", "2", "'r:,1'", "is not a list of ids"},
        BadLine{"A 1 8\nO MatMul 1 r:x w:\n", "2", "'r:x'", "is not a list of ids"},
        BadLine{"O MatMul 1 r: w: 3\n", "1", "'3'", "one field too many: write 'O <op>"},
        BadLine{"B 1 8\n", "1", "'B'", "a line starts with A, F, S, O or #"},
        BadLine{"A1 8\n", "1", "'A1'", "a line starts with"},
        BadLine{"\x01\xff\n", "1", "'\\x01\\xff'", "a line starts with"}));

TEST(TraceText, ALongBadLineIsShownInPart) {
  const std::string message = ErrorOf(std::string(100000, 'z'));
  EXPECT_LT(message.size(), 200u);
  EXPECT_THAT(message, HasSubstr("..."));
}

TEST(TraceText, WhatIsWrittenReadsBackTheSame) {
  const std::string text =
      "O start 0.000000000 r: w:\nA 0 10\nA 1 20 4 0\nS\nO MatMul 86399.999999999 r:0,1 w:1\nF 0\n"
      "A 0 30 0 12345\nF 1\nO end 1.000000001 r: w:0\n";
  const auto trace = ParseTrace(text, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::string written;
  AppendTrace(*trace, &written);
  EXPECT_EQ(written, text);
}

TEST(TraceText, AFileReadsLikeItsTextAndAMissingOneIsNamed) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/trace_text_test.trace");
  std::ofstream(path) << "A 1 8\nF 9\n";
  EXPECT_THAT(std::string(ReadTraceFile(path).status().message()),
              HasSubstr(absl::StrCat(path, ":2: '9'")));
  std::remove(path.c_str());
  const auto missing = ReadTraceFile(path);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(path));
}

TEST(TraceText, AFolderIsNotATrace) {
  EXPECT_EQ(ReadTraceFile(::testing::TempDir()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace thimble
