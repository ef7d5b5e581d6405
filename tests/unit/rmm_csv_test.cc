// RMM's logs: read as RMM writes them; a refusal names the wrong line.
#include "allocator/offline/logs/rmm_csv.h"

#include <fstream>
#include <string>

#include "allocator/offline/logs/log_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

TEST(RmmCsv, AllocationsAndFreesBecomeATrace) {
  const std::string path = testing::TempDir() + "/rmm.csv";
  std::ofstream(path) << kHeader << "12,10:11:12.131415,allocate,0x7f0000000000,1024,0x0\n"
                      << "12,10:11:12.131416,allocate failure,0x0,999999,0x0\r\n"
                      << "12,10:11:12.131417,allocate,0x7f0000000400,2048,2\n"
                      << "12,10:11:12.131418,free,0x7f0000000000,1024,0x0\n";
  const auto trace = ReadTraceOrLog(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::string text;
  AppendTrace(*trace, &text);
  EXPECT_EQ(text, "A 0 1024\nA 1 2048 2 0\nF 0\n");
  EXPECT_EQ(trace->max_live_bytes, 3072u);
}

// As RMM 26.08 writes them: %p of null, and streams as std::hex writes a pointer.
TEST(RmmCsv, NullPointersHoldNothing) {
  const auto events = ParseRmmCsv(kHeader +
                                      "7,10:11:12.131415,allocate,(nil),0,0\n"
                                      "7,10:11:12.131416,allocate,0x7f0000000000,1024,0x1\n"
                                      "7,10:11:12.131417,allocate,(nil),0,0\n"
                                      "7,10:11:12.131418,allocate failure,(nil),999999,0\n"
                                      "7,10:11:12.131419,free,(nil),0,0\n"
                                      "7,10:11:12.131420,free,0x7f0000000000,1024,0x1\n",
                                  "r.csv");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ((*events)[0].bytes, 1024u);
  EXPECT_EQ((*events)[1].kind, EventKind::kFree);
}

TEST(RmmCsv, OnlyItsHeaderMakesALog) {
  EXPECT_TRUE(IsRmmCsv(kHeader));
  EXPECT_FALSE(IsRmmCsv("Thread,Time\n"));
  EXPECT_FALSE(IsRmmCsv("A 1 4096\n"));
  EXPECT_TRUE(ParseRmmCsv(kHeader, "x")->empty());
}

TEST(RmmCsv, NamesTheLineThatIsWrong) {
  const auto error = [](const std::string& line) {
    const auto events = ParseRmmCsv(kHeader + "1,0,free,0x1,1,0x0\n" + line, "r.csv");
    EXPECT_FALSE(events.ok()) << line;
    return MessageOf(events.status());
  };
  EXPECT_THAT(error("1,0,allocate,0x1,1"), AllOf(HasSubstr("r.csv:3"), HasSubstr("six fields")));
  EXPECT_THAT(error("1,0,resize,0x1,1,0x0"), HasSubstr("neither 'allocate' nor 'free'"));
  EXPECT_THAT(error("1,0,allocate,0xzz,1,0x0"), HasSubstr("not a number"));
  EXPECT_THAT(error("1,0,allocate,0x1,-1,0x0"), HasSubstr("not a number"));
  EXPECT_THAT(error("1,0,allocate,0x1,99999999999999999999,0x0"), HasSubstr("not a number"));
}

}  // namespace
}  // namespace thimble
