// A good schedule, and every way to spoil it.
#include "allocator/offline/schedule/validator.h"

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kWeight = 0;
constexpr std::int32_t kActivation = 1;
constexpr std::int32_t kBatch = 2;

// A MiB takes a millisecond.
Machine SlowMachine() {
  Machine machine;
  machine.out_bytes_per_second = machine.in_bytes_per_second = kMiB * 1000;
  machine.out_latency_ns = machine.in_latency_ns = 0;
  return machine;
}

// Ten ops of 10 ms. The weight is touched by ops 0 and 3, the activation by 1 and 8, the batch by 7
// and by 2 of the next step, before whose op 6 it is freed.
Problem Step() {
  Problem problem = ProblemOf(std::vector<std::int64_t>(10, 100 * kMiB), 10 * kMs);
  problem.blocks.resize(3);
  problem.blocks[kWeight].bytes = 5 * kMiB;
  problem.blocks[kWeight].touches = {0, 3};
  problem.blocks[kWeight].is_cyclic = true;
  problem.blocks[kActivation].bytes = 10 * kMiB;
  problem.blocks[kActivation].touches = {1, 8};
  problem.blocks[kActivation].dies = 9;
  problem.blocks[kBatch].bytes = 2 * kMiB;
  problem.blocks[kBatch].touches = {7, 12};
  problem.blocks[kBatch].dies = 16;
  return problem;
}

// The weight is gone for ops 5 to 8, the activation for 3 to 6, the batch of the step before for 4
// and 5: its second touch is op 2 here.
Schedule Good() {
  Schedule schedule;
  for (int op = 0; op < 10; ++op) schedule.starts.push_back(op * 10 * kMs);
  schedule.step_ns = 100 * kMs;
  schedule.swaps = {
      {kActivation, 1, 8, true, 20 * kMs, 70 * kMs, 3, 7},
      {kBatch, 2, 6, false, 30 * kMs, 60 * kMs, 4, 6},
      {kWeight, 3, 10, true, 40 * kMs, 95 * kMs, 5, 9},
  };
  schedule.peak_bytes = 100 * kMiB;
  schedule.bytes_out = 17 * kMiB;
  schedule.bytes_in = 15 * kMiB;
  return schedule;
}

TEST(SwapValidator, AcceptsAGoodSchedule) {
  EXPECT_EQ(ValidateSchedule(Step(), SlowMachine(), Good()), absl::OkStatus());
}

struct Corruption {
  const char* name;
  std::function<void(Schedule&)> spoil;
  const char* words;
};

class SwapValidatorRefuses : public ::testing::TestWithParam<Corruption> {};

TEST_P(SwapValidatorRefuses, InWords) {
  Schedule schedule = Good();
  GetParam().spoil(schedule);
  const absl::Status status = ValidateSchedule(Step(), SlowMachine(), schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    Corruptions, SwapValidatorRefuses,
    ::testing::Values(
        Corruption{"OpLeftOut", [](Schedule& s) { s.starts.pop_back(); }, "9 starts for 10 ops"},
        Corruption{"OpTooEarly", [](Schedule& s) { s.starts[4] -= 1; },
                   "op 4 ('op4') begins at 39999999 ns, before op 3 ('op3') has ended"},
        Corruption{"StepTooShort", [](Schedule& s) { s.step_ns -= 1; }, "op 10 ('op0') begins"},
        Corruption{"NoSuchBlock", [](Schedule& s) { s.swaps[0].block = 3; }, "no block 3"},
        Corruption{"LeavesBeforeItsOpEnds", [](Schedule& s) { s.swaps[0].out_ns -= 1; },
                   "block 1 leaves at 19999999 ns, before op 1 ('op1') has ended"},
        Corruption{"BackTooLate", [](Schedule& s) { s.swaps[0].in_ns += 11 * kMs; },
                   "block 1 is back at 91000000 ns, after op 8 ('op8') needs it at 80000000"},
        Corruption{"BackBeforeItIsGone", [](Schedule& s) { s.swaps[0].in_ns = 29 * kMs; },
                   "comes back at 29000000 ns, before it is gone at 30000000"},
        Corruption{"GoneForOtherOps", [](Schedule& s) { s.swaps[0].gone_from = 2; },
                   "block 1 is not gone for all of the ops [2, 7)"},
        Corruption{"GoneForTooLong", [](Schedule& s) { s.swaps[0].gone_until = 8; },
                   "block 1 is not gone for all of the ops [3, 8)"},
        Corruption{"AfterAnOpThatDoesNotTouchIt", [](Schedule& s) { s.swaps[2].after = 2; },
                   "op 2 ('op2'), after which block 0 leaves, does not touch it"},
        Corruption{
            "TouchedWhileAway",
            [](Schedule& s) { s.swaps[2] = {kWeight, 0, 10, true, 30 * kMs, 95 * kMs, 4, 9}; },
            "op 3 ('op3') touches block 0 at 30000000 ns, while it is away"},
        Corruption{"TouchedInTheNextStep",
                   [](Schedule& s) {
                     s.swaps[2].before = 13;
                     s.swaps[2].in_ns = 125 * kMs;
                   },
                   "op 10 ('op0') touches block 0"},
        Corruption{"BackForNobody", [](Schedule& s) { s.swaps[2].before = 11; },
                   "op 11 ('op1'), before which block 0 is back, does not touch it"},
        Corruption{"NeverBackThoughNeeded",
                   [](Schedule& s) {
                     s.swaps[2].returns = false;
                     s.bytes_in -= 5 * kMiB;
                   },
                   "block 0 never comes back, but is needed"},
        Corruption{"GoneAfterItWasFreed",
                   [](Schedule& s) {
                     s.swaps[1].before = 7;
                     s.swaps[1].in_ns = 70 * kMs;
                   },
                   "block 2 never comes back, but is needed after"},
        Corruption{"TwoCopiesOutAtOnce",
                   [](Schedule& s) {
                     s.swaps[1].out_ns = 44 * kMs;
                     s.swaps[1].gone_from = 5;
                   },
                   "the copy out that begins at 40000000 ns of a step is not done when the next"},
        Corruption{"TwoCopiesInAtOnce",
                   [](Schedule& s) {
                     s.swaps[2].in_ns = 79 * kMs;
                     s.swaps[2].gone_until = 7;
                   },
                   "the copy in that begins at 70000000 ns of a step is not done when the next"},
        Corruption{"MoreThanItClaims", [](Schedule& s) { s.peak_bytes -= 1; },
                   "104857600 bytes are on the device at"},
        Corruption{"WrongSums", [](Schedule& s) { s.bytes_in += 1; },
                   "the schedule copies 17825792 bytes out and 15728640 in, but claims"}),
    [](const auto& info) { return info.param.name; });

// Copies that meet only because the next step begins while they run.
TEST(SwapValidator, AnEngineIsACircle) {
  Problem problem = ProblemOf(std::vector<std::int64_t>(8, 40 * kMiB), 10 * kMs);
  problem.blocks.resize(2);
  for (Block& block : problem.blocks) block.bytes = 8 * kMiB;
  problem.blocks[0].touches = {7, 12};
  problem.blocks[0].dies = 13;
  problem.blocks[1].touches = {0, 7};
  problem.blocks[1].dies = 8;
  Schedule schedule;
  for (int op = 0; op < 8; ++op) schedule.starts.push_back(op * 10 * kMs);
  schedule.step_ns = 80 * kMs;
  schedule.peak_bytes = 40 * kMiB;
  schedule.bytes_out = schedule.bytes_in = 16 * kMiB;
  schedule.swaps = {{1, 0, 7, true, 10 * kMs, 60 * kMs, 2, 6},
                    {0, 7, 12, true, 80 * kMs, 110 * kMs, 10, 11}};
  EXPECT_EQ(ValidateSchedule(problem, SlowMachine(), schedule), absl::OkStatus());
  schedule.swaps[1].out_ns = 84 * kMs;  // until 92, and the other from 90 on
  EXPECT_THAT(std::string(ValidateSchedule(problem, SlowMachine(), schedule).message()),
              HasSubstr("the copy out that begins at 4000000 ns"));
}

TEST(SwapValidator, MemoryIsFreeOnlyWhenTheHostKnows) {
  Machine machine = SlowMachine();
  machine.run_ahead_ns = 1;
  EXPECT_THAT(std::string(ValidateSchedule(Step(), machine, Good()).message()),
              HasSubstr("block 1 is not gone for all of the ops [3, 7)"));
}

// Blocks that are away, one at the time of another, count; and so does the time before an op that
// waits for one of them.
TEST(SwapValidator, CountsTheBytesOnTheDeviceAtAllTimes) {
  Problem problem = ProblemOf({30 * kMiB, 30 * kMiB, 30 * kMiB, 30 * kMiB}, 10 * kMs);
  problem.ops[2].live_bytes = 40 * kMiB;
  Block block;
  block.bytes = 10 * kMiB;
  block.touches = {0, 3};
  block.dies = 4;
  problem.blocks = {block};
  Schedule schedule;
  schedule.starts = {0, 10 * kMs, 20 * kMs, 40 * kMs};
  schedule.step_ns = 50 * kMs;
  schedule.bytes_out = schedule.bytes_in = 10 * kMiB;
  schedule.swaps = {{0, 0, 3, true, 10 * kMs, 30 * kMs, 2, 3}};
  schedule.peak_bytes = 30 * kMiB;
  EXPECT_EQ(ValidateSchedule(problem, SlowMachine(), schedule), absl::OkStatus());
  problem.ops[3].waiting_bytes = problem.ops[3].live_bytes = 31 * kMiB;
  schedule.peak_bytes = 31 * kMiB;
  EXPECT_EQ(ValidateSchedule(problem, SlowMachine(), schedule), absl::OkStatus());
  schedule.peak_bytes = 30 * kMiB;
  EXPECT_THAT(std::string(ValidateSchedule(problem, SlowMachine(), schedule).message()),
              HasSubstr("32505856 bytes are on the device at 30000000 ns"));
}

}  // namespace
}  // namespace thimble::schedule
