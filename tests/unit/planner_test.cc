// Planner: learns a loop, serves it, and survives requests that it did not foresee.
#include "allocator/plan/planner.h"

#include <map>
#include <vector>

#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

// What a step does, in order: a positive number takes that key's block, a negative one frees it.
using Script = std::vector<int>;

constexpr Bytes kPlenty = kGiB;

// Lifetimes are nested as in a forward and a backward pass.
const Script kTraining = {1, 2, 3, 4, 5, -5, 6, -6, -4, 7, -7, -3, 8, -8, -2, -1};
const Script kOtherOrder = {2, 1, 3, 4, 5, -5, 6, -4, -6, 7, -3, -7, 8, -8, -1, -2};
const Script kEvaluation = {1, 11, -1, 12, -11, 13, -12, -13};

class PlannerTest : public testing::Test {
 protected:
  ~PlannerTest() override { planner_.CheckInvariants(); }

  static Bytes BytesOf(int key) { return static_cast<Bytes>(key) * kMiB; }

  bool IsFree(Bytes offset, Bytes bytes) const {
    if (offset + bytes > room_) return false;
    for (const auto& [key, held] : held_) {
      if (held.offset < offset + bytes && offset < held.offset + held.bytes) return false;
    }
    return true;
  }

  // Somewhere behind everything that plans know of.
  Bytes Elsewhere(int key) const { return kPlenty + static_cast<Bytes>(key) * kGiB; }

  void Take(int key) {
    const Bytes bytes = BytesOf(key);
    const SiteId site = planner_.Enter(static_cast<std::uint64_t>(key), step_, bytes);
    Bytes offset = Elsewhere(key);
    if (const auto* const place = planner_.FindPlace(site)) {
      if (IsFree(place->offset, bytes)) {
        planner_.CountHit(site);
        offset = place->offset;
      } else if (const auto other =
                     planner_.Repair(site, [&](Bytes at) { return IsFree(at, bytes); })) {
        offset = *other;
      }
    }
    held_[key] = {site, offset, bytes};
  }

  void Do(int event) {
    if (event > 0) {
      Take(event);
    } else {
      planner_.Leave(held_.at(-event).site);
      held_.erase(-event);
    }
  }

  void Run(const Script& script) {
    ++step_;
    for (const int event : script) {
      if (planner_.IsDue()) {
        planner_.Activate(region_is_whole_);
        ++activations_;
      }
      Do(event);
      if (planner_.WantsDraft()) MakePlan(kPlenty);
    }
  }

  void RunUntilAPlanIsWanted() {
    for (int i = 0; i < 100 && !planner_.WantsDraft(); ++i) {
      ++step_;
      for (const int event : kTraining) Do(event);
    }
    ASSERT_TRUE(planner_.WantsDraft());
  }

  void MakePlan(Bytes memory) {
    plan::SolveOptions options;
    options.max_work = 1000000;
    Planner::Ground ground;
    ground.region = {0, memory};
    ground.obstacles = obstacles_;
    const Planner::Draft draft = planner_.MakeDraft(ground);
    planner_.Adopt(draft, plan::SolveConflicts(draft.ToProblem(), options));
  }

  struct Held {
    SiteId site;
    Bytes offset;
    Bytes bytes;
  };
  Planner planner_;
  std::uint64_t step_ = 0;
  std::map<int, Held> held_;
  std::vector<Extent> obstacles_;
  Bytes room_ = kPlenty;
  bool region_is_whole_ = true;
  int activations_ = 0;
};

TEST_F(PlannerTest, ALoopIsLearntAndThenServed) {
  for (int i = 0; i < 40; ++i) Run(i % 2 == 0 ? kTraining : kOtherOrder);
  const PlanStats stats = planner_.stats();
  EXPECT_EQ(stats.plans, 1u);
  EXPECT_GT(stats.plan_requests, 100u);
  EXPECT_EQ(stats.plan_hits, stats.plan_requests);
  EXPECT_EQ(stats.plan_repairs, 0u);
  EXPECT_EQ(stats.plan_repeats, stats.plan_hits - 8) << "all but the first time of each";
  EXPECT_EQ(stats.plan_height, stats.plan_lower_bound);
}

TEST_F(PlannerTest, NothingIsPlannedBeforeThingsRepeat) {
  for (int i = 0; i < 1000; ++i) {
    step_ = 0;
    Take(1 + i);
    planner_.Leave(held_.at(1 + i).site);
    held_.clear();
    EXPECT_FALSE(planner_.WantsDraft());
  }
}

// Two steps of two requests are a round. One in which all is new, then three that are calm.
TEST_F(PlannerTest, CalmIsCountedFromTheRoundInWhichSomethingWasNew) {
  const auto steps_until_a_plan_is_wanted = [&](const Script& script) {
    int steps = 0;
    for (; steps < 100 && !planner_.WantsDraft(); ++steps) {
      ++step_;
      for (const int event : script) Do(event);
    }
    return steps;
  };
  EXPECT_EQ(steps_until_a_plan_is_wanted({1, 2, -2, -1}), 2 * (1 + 3));
}

TEST_F(PlannerTest, StepsThatNeverMeetShareOnePlan) {
  for (int i = 0; i < 60; ++i) Run(i % 5 == 4 ? kEvaluation : kTraining);
  const std::uint64_t before = planner_.stats().plan_hits;
  Run(kEvaluation);
  Run(kTraining);
  EXPECT_EQ(planner_.stats().plan_hits - before, 4u + 8u) << "all requests of both";
  EXPECT_LT(planner_.stats().plan_height, BytesOf(11 + 12 + 13)) << "they overlay each other";
}

TEST_F(PlannerTest, ObstaclesAreNotPlannedOver) {
  obstacles_ = {{4 * kMiB, 5 * kMiB}, {9 * kMiB, 20 * kMiB}};
  for (int i = 0; i < 40; ++i) Run(kTraining);
  ASSERT_EQ(planner_.stats().plans, 1u);
  for (const int event : kTraining) {
    Do(event);
    if (event < 0) continue;
    const Bytes offset = held_.at(event).offset;
    for (const Extent& obstacle : obstacles_) {
      EXPECT_TRUE(offset >= obstacle.end || offset + BytesOf(event) <= obstacle.begin);
    }
  }
}

TEST_F(PlannerTest, AnOccupiedPlaceIsRepairedForGood) {
  for (int i = 0; i < 40; ++i) Run(kTraining);
  ASSERT_EQ(planner_.stats().plans, 1u);
  // Another block is in the place of key 5.
  Run({1, 2, 3, 4, 5});
  const Bytes place = held_.at(5).offset;
  Run({-5, -4, -3, -2, -1});
  held_[100] = {kNoSite, place, kMiB};
  const std::uint64_t hits = planner_.stats().plan_hits;
  Run(kTraining);
  EXPECT_GE(planner_.stats().plan_repairs, 1u);
  EXPECT_EQ(planner_.stats().plan_hits - hits, 8u);
  const std::uint64_t repairs = planner_.stats().plan_repairs;
  Run(kTraining);
  EXPECT_EQ(planner_.stats().plan_repairs, repairs) << "once was enough";
}

TEST_F(PlannerTest, AStepThatFailedOnceIsPlannedForBeforeItComesAgain) {
  for (int i = 0; i < 40; ++i) Run(kTraining);
  ASSERT_EQ(planner_.stats().plans, 1u);
  // Now and then, more is held at once, and there is no room for repairs.
  const Script rare = {1, 2, 3, 4, 5, 6, -5, -6, -4, 7, 8, -7, -3, -8, -2, -1};
  room_ = planner_.stats().plan_height;
  Run(rare);
  EXPECT_GT(planner_.stats().plan_misses, 0u);
  room_ = kPlenty;
  for (int i = 0; i < 40; ++i) Run(kTraining);
  EXPECT_EQ(planner_.stats().plans, 2u);
  const std::uint64_t hits = planner_.stats().plan_hits;
  Run(rare);
  EXPECT_EQ(planner_.stats().plan_hits - hits, 8u);
  EXPECT_EQ(planner_.stats().plan_repairs, 0u);
}

TEST_F(PlannerTest, APlanThatNoLongerFitsIsDroppedAndReplaced) {
  for (int i = 0; i < 40; ++i) Run(kTraining);
  ASSERT_EQ(planner_.stats().plans, 1u);
  const Script other = {21, 22, 23, -22, 24, -24, 25, -23, -25, -21};
  for (int i = 0; i < 200; ++i) Run(other);
  const PlanStats stats = planner_.stats();
  EXPECT_EQ(stats.plans_retired, 1u);
  EXPECT_GE(stats.plans, 2u);
  const std::uint64_t before = stats.plan_hits;
  Run(other);
  EXPECT_EQ(planner_.stats().plan_hits - before, 5u);
}

TEST_F(PlannerTest, PlacesForWhichThereIsNoMemoryAreNotUsed) {
  RunUntilAPlanIsWanted();
  MakePlan(/*memory=*/8 * kMiB);
  for (int i = 0; i < 3; ++i) Run(kTraining);
  EXPECT_GT(planner_.stats().plan_hits, 0u);
  EXPECT_GT(planner_.stats().plan_unplaced, 0u);
}

TEST_F(PlannerTest, TheRegionEndsWithTheHighestPlace) {
  for (int i = 0; i < 40; ++i) Run(kTraining);
  EXPECT_EQ(activations_, 1);
  EXPECT_EQ(planner_.region().begin, 0u);
  EXPECT_EQ(planner_.region().end, planner_.stats().plan_height);
}

TEST_F(PlannerTest, APlanWithoutAllItsMemoryIsDueAgainAFewTimes) {
  region_is_whole_ = false;
  for (int i = 0; i < 80; ++i) Run(kTraining);
  EXPECT_EQ(planner_.stats().plans, 1u) << "it serves nevertheless";
  EXPECT_EQ(activations_, 5);
}

TEST_F(PlannerTest, APlanIsGivenUpIfNoEndOfAStepSuits) {
  RunUntilAPlanIsWanted();
  MakePlan(kPlenty);
  int postponed = 0;
  for (int i = 0; i < 200; ++i) {
    for (const int event : kTraining) {
      if (planner_.IsDue()) {
        planner_.Postpone();
        ++postponed;
      }
      Do(event);
    }
  }
  EXPECT_EQ(postponed, 8);
  EXPECT_EQ(planner_.stats().plans, 0u);
}

// Every step takes two blocks and keeps them, so that no end of a step is as empty as the last
// round's.
TEST_F(PlannerTest, APlanIsDueAfterAWhileEvenIfNoEndOfAStepIsEmptyEnough) {
  for (int i = 0; i < 20; ++i) {
    ++step_;
    for (const int event : kTraining) Do(event);
  }
  int kept = 100;
  Take(kept++);
  for (const int event : {1, 2, 3}) Do(event);
  MakePlan(kPlenty);
  for (const int event : {-3, -2, -1}) Do(event);
  int steps = 0;
  for (; steps < 100 && !planner_.IsDue(); ++steps) {
    ++step_;
    Take(kept++);
    for (std::size_t i = 0; i < kTraining.size(); ++i) {
      if (i == 5) Take(kept++);
      Do(kTraining[i]);
    }
  }
  EXPECT_GE(steps, 4);
  EXPECT_LE(steps, 12);
}

TEST_F(PlannerTest, APlanThatAnotherProcessLearnedServesSoon) {
  RunUntilAPlanIsWanted();
  Planner::Ground ground;
  ground.region = {kMiB, kPlenty};
  const Planner::Draft draft = planner_.MakeDraft(ground);
  const Learned learned = draft.ToLearned(plan::SolveConflicts(draft.ToProblem(), {}));
  EXPECT_EQ(learned.sites.size(), 8u);
  Planner second;
  second.Restore(learned);
  std::swap(planner_, second);
  int steps = 0;
  for (; steps < 10 && planner_.stats().plan_requests == 0; ++steps) Run(kTraining);
  EXPECT_LE(steps, 3);
  Run(kTraining);
  EXPECT_EQ(planner_.stats().plan_hits, planner_.stats().plan_requests);
  EXPECT_EQ(planner_.stats().plan_height, planner_.stats().plan_lower_bound);
}

TEST_F(PlannerTest, PlacesAreRememberedRelativeToTheRegion) {
  RunUntilAPlanIsWanted();
  const auto draft_in = [](Planner& planner, Extent region) {
    Planner::Ground ground;
    ground.region = region;
    ground.obstacles = {{0, region.begin}};
    return planner.MakeDraft(ground);
  };
  const Planner::Draft first = draft_in(planner_, {kMiB, kPlenty});
  EXPECT_FALSE(first.Remembered().has_value());
  const plan::Plan plan = plan::SolveConflicts(first.ToProblem(), {});
  Planner second;
  second.Restore(first.ToLearned(plan));
  const Planner::Draft draft = draft_in(second, {5 * kMiB, kPlenty});
  const std::optional<plan::Plan> remembered = draft.Remembered();
  ASSERT_TRUE(remembered.has_value());
  EXPECT_TRUE(plan::ValidatePlan(draft.ToProblem(), *remembered).ok());
  EXPECT_EQ(remembered->height - 5 * kMiB, plan.height - kMiB);
}

TEST_F(PlannerTest, PlacesAreRememberedOnlyIfMostAreKnown) {
  RunUntilAPlanIsWanted();
  Planner::Ground ground;
  ground.region = {0, kPlenty};
  const Planner::Draft first = planner_.MakeDraft(ground);
  Learned learned = first.ToLearned(plan::SolveConflicts(first.ToProblem(), {}));
  learned.sites[0].place = kNoPlace;
  Planner second;
  second.Restore(learned);
  EXPECT_FALSE(second.MakeDraft(ground).Remembered().has_value()) << "one of eight";
}

TEST_F(PlannerTest, AUselessPlanFileIsForgottenAndLearntAnew) {
  Learned learned;
  for (std::uint64_t key = 100; key < 200; ++key)
    learned.sites.push_back({key, kMiB, true, kNoPlace});
  learned.conflicts.resize(learned.sites.size() * learned.row_words());
  planner_.Restore(learned);
  EXPECT_EQ(planner_.stats().plan_sites, 100u);
  for (int i = 0; i < 300; ++i) Run(kTraining);
  EXPECT_EQ(planner_.stats().plans_stale, 1u);
  EXPECT_EQ(planner_.stats().plan_sites, 8u);
  EXPECT_EQ(planner_.stats().plans, 1u);
}

TEST_F(PlannerTest, WithoutAnAnswerThereIsNoPlan) {
  RunUntilAPlanIsWanted();
  planner_.MakeDraft({});
  EXPECT_FALSE(planner_.WantsDraft()) << "one at a time";
  planner_.Abandon();
  EXPECT_FALSE(planner_.WantsDraft());
  EXPECT_EQ(planner_.stats().plans, 0u);
}

}  // namespace
}  // namespace thimble
