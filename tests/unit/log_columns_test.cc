// Columns: a log as numbers, from which all events can be restored.
#include "allocator/offline/logs/log_columns.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<std::uint64_t>;

Numbers NumbersOf(const LogColumns::Column& column) {
  Numbers numbers;
  std::uint64_t number = 0;
  int shift = 0;
  for (const char c : column.bytes) {
    number |= static_cast<std::uint64_t>(c & 0x7f) << shift;
    shift += 7;
    if ((c & 0x80) != 0) continue;
    numbers.push_back(number);
    number = 0;
    shift = 0;
  }
  EXPECT_EQ(numbers.size(), column.count) << column.name;
  return numbers;
}

std::map<std::string, Numbers> AllOf(const LogColumns& columns) {
  std::map<std::string, Numbers> all;
  for (const LogColumns::Column& column : columns.columns) all[column.name] = NumbersOf(column);
  return all;
}

Event Make(EventKind kind, std::uint64_t address, Bytes bytes, std::uint64_t key,
           std::uint64_t time) {
  return {kind, address, bytes, StreamId{}, key, time};
}
Event Allocate(std::uint64_t address, Bytes bytes, std::uint64_t key, std::uint64_t time) {
  return Make(EventKind::kAllocate, address, bytes, key, time);
}
Event Free(std::uint64_t address, std::uint64_t time) {
  return Make(EventKind::kFree, address, 0, 0, time);
}

TEST(LogColumns, BlocksAreNumberedAndFreesSayWhich) {
  LogContents log;
  log.events = {Allocate(0x5000, 1000, 0, 10),
                Allocate(0x4000, 300000, 3, 30),
                Free(0x5000, 31),
                Allocate(0x5000, 7, 0, 40),
                Free(0x4000, 41),
                Free(0x9000, 42)};
  auto all = AllOf(ToColumns(log));
  EXPECT_THAT(all["op.time"], ElementsAre(10, 20, 1, 9, 1))
      << "frees of unknown blocks are left out";
  EXPECT_THAT(all["op.what"], ElementsAre(0, 0, 2, 0, 2));
  EXPECT_THAT(all["block.address"], ElementsAre(0x5000 * 2, 0x1000 * 2 - 1, 0x1000 * 2));
  EXPECT_THAT(all["block.bytes"], ElementsAre(1000, 300000, 7));
  EXPECT_THAT(all["block.group"], ElementsAre(0, 1, 0));
}

TEST(LogColumns, GroupsAreNamesKeysAndSizes) {
  LogContents log;
  log.names[5] = "dense/\"MatMul\"\n";
  log.events = {Allocate(256, 8192, 5, 1), Allocate(16384, 9000, 5, 2), Allocate(65536, 8192, 6, 3),
                Allocate(131072, 8192, 0, 4), Allocate(262144, 4096, 0, 5)};
  const LogColumns columns = ToColumns(log);
  EXPECT_THAT(AllOf(columns)["block.group"], ElementsAre(0, 0, 1, 2, 3));
  const std::string text = ToText(columns);
  EXPECT_THAT(text, HasSubstr(R"({"kind":"name","name":"dense/\"MatMul\"\u000a"})"));
  EXPECT_THAT(text, HasSubstr(R"({"kind":"key","value":"6"})"));
  EXPECT_THAT(text, HasSubstr(R"({"kind":"size","value":"8192"})"));
  EXPECT_THAT(text, HasSubstr(R"({"kind":"small","value":"4096"})"));
}

TEST(LogColumns, MarksSayWhenAndAboutWhat) {
  LogContents log;
  log.texts = {"why"};
  log.events = {
      Make(EventKind::kLimit, 0x1000, 64, 16, 1),  Allocate(0x4000, 8192, 3, 2),
      Make(EventKind::kStep, 0, 0, 0, 5),          Make(EventKind::kEvict, 0x4000, 4096, 0, 6),
      Make(EventKind::kFetch, 0x7000, 4096, 1, 8), Make(EventKind::kUse, 0x4000, 0, 0, 9),
      Make(EventKind::kOom, 0, 99, 3, 9)};
  auto all = AllOf(ToColumns(log));
  const auto kind = [](EventKind kind) { return static_cast<std::uint64_t>(kind); };
  EXPECT_THAT(all["mark.kind"],
              ElementsAre(kind(EventKind::kLimit), kind(EventKind::kStep), kind(EventKind::kEvict),
                          kind(EventKind::kFetch), kind(EventKind::kOom)));
  EXPECT_THAT(all["mark.op"], ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(all["mark.time"], ElementsAre(1, 4, 1, 2, 1));
  EXPECT_THAT(all["mark.address"], ElementsAre(0x1000, 0, 1, 0, 0)) << "blocks by number, from 1";
  EXPECT_THAT(all["mark.bytes"], ElementsAre(64, 0, 4096, 4096, 99));
  EXPECT_THAT(all["mark.key"], ElementsAre(16, 0, 0, 1, 0));
}

// Columns and summary must agree about a block whose free is missing.
TEST(LogColumns, AnAddressThatIsAllocatedTwiceIsFreedBetween) {
  LogContents log;
  log.events = {Allocate(256, 1000, 1, 1), Allocate(256, 600, 1, 2), Free(256, 3)};
  auto all = AllOf(ToColumns(log));
  EXPECT_THAT(all["op.what"], ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(Summarize(log).peak_in_use, 1000u);
}

TEST(LogColumns, ColumnsFollowTheirLineInTheFile) {
  LogContents log;
  log.version = 2;
  log.events = {Allocate(256, 1000, 1, 1), Free(256, 500)};
  const LogColumns columns = ToColumns(log);
  const std::string text = ToText(columns);
  EXPECT_THAT(text, testing::StartsWith(R"({"version":2,"kinds":{"allocate":1,)"));
  EXPECT_THAT(text, HasSubstr(R"({"name":"op.time","count":2,"bytes":3})"));
  EXPECT_EQ(text.substr(text.find('\n') + 1, 3), "\x01\xf3\x03");
}

TEST(LogColumns, AFileThatIsNotALogIsNamed) {
  const std::string out = testing::TempDir() + "/columns";
  EXPECT_EQ(WriteLogColumns("/no/such/log", out).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace thimble
