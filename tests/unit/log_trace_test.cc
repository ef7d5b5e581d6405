// Event log and trace: the same operations in two forms.
#include "allocator/offline/logs/log_trace.h"

#include <fstream>
#include <string>

#include "allocator/observe/event_log.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_summary.h"
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

TEST_F(LogTrace, ATraceSurvivesConversionToEventsAndBack) {
  const Trace trace = ParseTrace(kText, "t").value();
  const auto back = TraceFromEvents(EventsFromTrace(trace));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(TextOf(*back), kText);
  EXPECT_EQ(back->ids, trace.ids);
  EXPECT_EQ(back->max_live_bytes, trace.max_live_bytes);
}

TEST_F(LogTrace, AnArenasLogHasExactlyItsRequests) {
  Make(64 * kChunk, ArenaOptions());
  const std::string path = ::testing::TempDir() + "/log_trace_test.log";
  const Address before = Allocate(kChunk, kFirst);
  ASSERT_TRUE(arena_->StartLog(path).ok());
  const Address large = arena_->Allocate({3 * kChunk, 0, kSecond, 42}).value();
  Free(before, kFirst);  // unknown to the log
  const Address small = Allocate(100, kFirst);
  arena_->MarkStep();
  Free(small, kFirst);
  const Address again = Allocate(100, kFirst);  // from the magazine
  Free(large, kSecond);
  ASSERT_TRUE(arena_->StopLog().ok());
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

TEST_F(LogTrace, ALogHasPeaksAndReservedMemory) {
  Make(64 * kChunk, ArenaOptions());
  const std::string path = ::testing::TempDir() + "/log_summary_test.log";
  ASSERT_TRUE(arena_->StartLog(path, /*most_events=*/0).ok());
  Free(Allocate(3 * kChunk, kFirst), kFirst);
  const Address kept = Allocate(kChunk, kFirst);
  arena_->MarkStep();
  ASSERT_TRUE(arena_->StopLog().ok());
  const auto summary = ConvertLog(path, path + ".trace");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->events, ReadEventLog(path)->size());
  EXPECT_EQ(summary->allocations, 2u);
  EXPECT_EQ(summary->peak_in_use, 3 * kChunk);
  EXPECT_EQ(summary->peak_reserved, arena_->GetStats().peak_reserved);
  EXPECT_EQ(summary->reserved_at_start, 0u);
  EXPECT_EQ(summary->reserved_at_peak, 3 * kChunk);
  EXPECT_EQ(summary->stitches, 0u);
  EXPECT_EQ(summary->steps, 1u);
  EXPECT_EQ(summary->plan_requests, 0u);
  EXPECT_TRUE(summary->complete);
  EXPECT_EQ(TextOf(*ReadTraceOrLog(path)), TextOf(*ReadTraceOrLog(path + ".trace")));
  EXPECT_FALSE(ConvertLog(path, "/no/such/folder/x").ok());
  EXPECT_FALSE(ConvertLog(path + ".trace", "").ok());
  Free(kept, kFirst);
}

TEST_F(LogTrace, ALogHasTheOutcomeOfPlans) {
  ArenaOptions options;
  options.plan = true;
  Make(64 * kChunk, options);
  const std::string path = ::testing::TempDir() + "/log_plan_test.log";
  ASSERT_TRUE(arena_->StartLog(path, /*most_events=*/0).ok());
  for (int step = 0; step < 200; ++step) {
    const Address first = Allocate(3 * kChunk, kFirst);
    const Address second = Allocate(2 * kChunk, kFirst);
    Free(first, kFirst);
    Free(second, kFirst);
    arena_->WaitForPlans();
  }
  ASSERT_TRUE(arena_->StopLog().ok());
  const auto summary = ConvertLog(path, "");
  ASSERT_TRUE(summary.ok()) << summary.status();
  const PlanStats plan = arena_->GetStats();
  ASSERT_GT(plan.plan_requests, 200u);
  EXPECT_LE(summary->plan_requests, plan.plan_requests);
  EXPECT_GE(summary->plan_requests + 64, plan.plan_requests);
  EXPECT_EQ(summary->plan_hits, summary->plan_requests);
  EXPECT_GE(summary->plan_repeats + 2, summary->plan_hits);
}

TEST_F(LogTrace, OpsBecomeAccesses) {
  constexpr Bytes kBlock = 8 * kChunk;
  ArenaOptions options;
  options.swap = SwapMode::kAuto;
  Make(16 * kBlock, options);
  const std::string path = ::testing::TempDir() + "/log_ops_test.log";
  ASSERT_TRUE(arena_->StartLog(path, /*most_events=*/0).ok());
  const Address first = Allocate(kBlock, kFirst);
  const Address small = Allocate(kChunk / 2, kFirst);
  ASSERT_TRUE(arena_->Pin({first, small}, {/*key=*/0xabc, /*step=*/1}).ok());
  const Address result = Allocate(2 * kBlock, kFirst);
  ASSERT_TRUE(arena_->Unpin({first, small}, {result}, kFirst, false).ok());
  Free(first, kFirst);
  ASSERT_TRUE(arena_->Pin({result}, {/*key=*/0xdef, /*step=*/1}).ok());
  ASSERT_TRUE(arena_->Unpin({result}, {}, kFirst, false).ok());
  ASSERT_TRUE(arena_->StopLog().ok());
  const Trace trace = ReadTraceOrLog(path).value();
  ASSERT_EQ(trace.accesses.size(), 2u);
  EXPECT_EQ(trace.accesses[0].name, "0000000000000abc");
  EXPECT_EQ(trace.accesses[0].reads, std::vector<std::uint32_t>{0});
  EXPECT_EQ(trace.accesses[0].writes, std::vector<std::uint32_t>{2});
  EXPECT_EQ(trace.accesses[0].at, 4u) << "a step begins with it, before the first block is freed";
  EXPECT_GT(trace.accesses[0].ns, 0);
  EXPECT_EQ(trace.accesses[1].reads, std::vector<std::uint32_t>{2});
  std::string text;
  AppendTrace(trace, &text);
  EXPECT_TRUE(ParseTrace(text, "again").ok()) << text;
}

TEST_F(LogTrace, ALogHasTheBytesSwapped) {
  constexpr Bytes kBlock = 8 * kChunk;
  ArenaOptions options;
  options.swap = SwapMode::kAuto;
  Make(2 * kBlock, options);
  const std::string path = ::testing::TempDir() + "/log_swap_test.log";
  ASSERT_TRUE(arena_->StartLog(path, /*most_events=*/0).ok());
  std::vector<Address> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(Allocate(kBlock, kFirst));
    ASSERT_TRUE(arena_->Unpin({}, {blocks.back()}, kFirst, false).ok());
  }
  ASSERT_TRUE(arena_->Pin({blocks[0]}, OpName()).ok());
  ASSERT_TRUE(arena_->StopLog().ok());
  const auto summary = ConvertLog(path, "");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->swap_out_bytes, 3 * kBlock);
  EXPECT_EQ(summary->swap_in_bytes, kBlock);
  EXPECT_EQ(summary->peak_swapped, 2 * kBlock);
  EXPECT_GT(summary->swap_wait_ns, 0u);
  const TraceCopied copied = ReadTraceOrLog(path)->copied;
  EXPECT_EQ(copied.out_bytes, 3 * kBlock);
  EXPECT_EQ(copied.in_bytes, kBlock);
  EXPECT_GT(copied.out_ns, 0u);
  EXPECT_GT(copied.in_ns, 0u);
}

}  // namespace
}  // namespace thimble
