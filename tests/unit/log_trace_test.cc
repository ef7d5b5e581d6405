// Event log and trace: the same operations in two forms.
#include "allocator/observe/log_trace.h"

#include <fstream>
#include <string>

#include "allocator/observe/event_log.h"
#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const Trace& trace) {
  std::string text;
  for (const TraceOp& op : trace.ops) AppendTraceOp(op, &text);
  return text;
}

constexpr char kText[] =
    "A 0 1000 3 77\n"
    "A 1 5\n"
    "S\n"
    "F 0\n"
    "A 0 2000000\n"
    "F 1\n";

class LogTrace : public ArenaTest {};

TEST_F(LogTrace, ATraceSurvivesTheWayThroughEvents) {
  const Trace trace = ParseTrace(kText, "t").value();
  const auto back = TraceFromEvents(EventsFromTrace(trace));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(TextOf(*back), kText);
  EXPECT_EQ(back->ids, trace.ids);
  EXPECT_EQ(back->max_live_bytes, trace.max_live_bytes);
}

TEST_F(LogTrace, WhatAnArenaLoggedIsWhatWasAskedOfIt) {
  Make(64 * kChunk, ArenaOptions());
  const std::string path = ::testing::TempDir() + "/log_trace_test.log";
  const Address before = Allocate(kChunk, kFirst);
  ASSERT_TRUE(arena_->log().Start(path).ok());
  const Address large = arena_->Allocate(3 * kChunk, 0, kSecond, 42).value();
  Free(before, kFirst);  // unknown to the log
  const Address small = Allocate(100, kFirst);
  arena_->MarkStep();
  Free(small, kFirst);
  const Address again = Allocate(100, kFirst);  // from the magazine
  Free(large, kSecond);
  ASSERT_TRUE(arena_->log().Stop().ok());
  Free(again, kFirst);

  const auto trace = ReadTraceOrLog(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::string first = std::to_string(static_cast<std::uint64_t>(kFirst));
  const std::string second = std::to_string(static_cast<std::uint64_t>(kSecond));
  const std::string small_line = "A 1 100 " + first + " 0\n";
  EXPECT_EQ(TextOf(*trace), "A 0 " + std::to_string(3 * kChunk) + " " + second + " 42\n" +
                                small_line + "S\nF 1\n" + small_line + "F 0\n");
}

TEST_F(LogTrace, TextFilesAreReadAsText) {
  const std::string path = ::testing::TempDir() + "/log_trace_test.trace";
  std::ofstream(path) << kText;
  EXPECT_EQ(TextOf(ReadTraceOrLog(path).value()), kText);
}

TEST_F(LogTrace, AnAddressThatIsAllocatedTwiceIsRefused) {
  Event event;
  event.kind = EventKind::kAllocate;
  event.address = 0xabc00;
  const auto trace = TraceFromEvents({event, event});
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("0xabc00 twice"));
}

}  // namespace
}  // namespace thimble
