// P1, exhaustively: every driver call of every public operation fails once, alone, together with
// every other one, and for the rest of the operation. Nothing may be lost, ever.
#include "tests/fault/operations.h"

namespace thimble {
namespace {

class EveryCall : public testing::TestWithParam<Operation> {
 protected:
  // How strictly "as before" is meant after a failed operation. One fault is always undone; a
  // second one, in the middle of that, may leave free memory that the driver did not take back.
  enum class Undo : bool { kComplete, kMayKeepFreeMemory };

  // A new scene, prepared up to the operation.
  std::unique_ptr<Scene> Prepare() {
    const Operation& operation = GetParam();
    auto scene = std::make_unique<Scene>(operation.options);
    if (operation.opens) return scene;
    EXPECT_TRUE(scene->Open().ok());
    operation.prepare(*scene);
    EXPECT_TRUE(scene->IsSound());
    return scene;
  }

  // How many calls were made to fail.
  struct Hits {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  // Runs the operation while arm(scene) has chosen calls to fail, and proves that nothing is lost.
  template <typename Arm>
  Hits RunWith(Arm arm, Undo undo) {
    const Operation& operation = GetParam();
    const std::unique_ptr<Scene> scene = Prepare();
    const ArenaStats before = scene->is_open() ? scene->stats() : ArenaStats{};
    arm(*scene);
    const absl::Status status = operation.run(*scene);
    const Hits hits = {scene->faults().failures(), scene->second_faults().failures()};
    scene->Heal();
    if (hits.first + hits.second == 0) {
      EXPECT_EQ(status.code(), operation.expected) << status;
      EXPECT_TRUE(!operation.took_route || operation.took_route(before, scene->stats()));
    }
    if (scene->is_open()) {
      EXPECT_TRUE(scene->IsSound());
      if (!status.ok() && before.limit != 0) ExpectAsBefore(before, scene->stats(), undo);
      EXPECT_TRUE(scene->Works());
      EXPECT_TRUE(scene->TrimsToNothing());
      scene->Close();
    }
    EXPECT_TRUE(scene->GaveAllBack());
    return hits;
  }

  static void ExpectAsBefore(const ArenaStats& before, const ArenaStats& after, Undo undo) {
    EXPECT_EQ(after.live_blocks, before.live_blocks);
    EXPECT_EQ(after.in_use, before.in_use);
    EXPECT_TRUE(after.reserved <= before.reserved || undo == Undo::kMayKeepFreeMemory);
    EXPECT_LE(after.reserved - after.spare, after.limit);
  }

  // The calls of the operation when nothing fails.
  std::uint64_t CountCalls() {
    const std::unique_ptr<Scene> scene = Prepare();
    const std::uint64_t before = scene->faults().calls().total();
    GetParam().run(*scene).IgnoreError();
    return scene->faults().calls().total() - before;
  }
};

INSTANTIATE_TEST_SUITE_P(Operations, EveryCall, testing::ValuesIn(AllOperations()), OperationName);

TEST_P(EveryCall, FailsOnceAndLeavesNoTrace) {
  const ProcessResources resources = CountResources();
  const std::uint64_t calls = CountCalls();
  EXPECT_GE(calls, GetParam().least_calls) << "this is not the route that was meant";
  for (const absl::StatusCode code :
       {absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable}) {
    std::uint64_t k = 0;
    for (;; ++k) {
      SCOPED_TRACE(testing::Message() << "call " << k << " of " << calls << " fails");
      FaultPlan plan;
      plan.first = k;
      plan.code = code;
      const auto arm = [&](Scene& scene) { scene.faults().Arm(plan); };
      if (RunWith(arm, Undo::kComplete).first == 0) break;
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(k, calls) << "not every call was made to fail";
  }
  RecordProperty("fault_points", static_cast<int>(calls));
  EXPECT_EQ(CountResources(), resources);
}

TEST_P(EveryCall, FailsAndAllThatFollow) {
  const ProcessResources resources = CountResources();
  // A broken driver takes nothing back, so the arena must outlive the fault.
  if (GetParam().opens || GetParam().closes) return;
  const std::uint64_t calls = CountCalls();
  for (std::uint64_t k = 0; k < calls; ++k) {
    SCOPED_TRACE(testing::Message() << "the driver is broken from call " << k << " on");
    FaultPlan plan;
    plan.first = k;
    plan.every = 1;
    const auto arm = [&](Scene& scene) { scene.faults().Arm(plan); };
    EXPECT_GT(RunWith(arm, Undo::kMayKeepFreeMemory).first, 0u);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(CountResources(), resources);
}

TEST_P(EveryCall, FailsTogetherWithEveryLaterOne) {
  constexpr std::uint64_t kMostCalls = 32;  // beyond that there are too many pairs, all alike
  const ProcessResources resources = CountResources();
  const std::uint64_t calls = CountCalls();
  if (calls > kMostCalls) return;
  std::uint64_t pairs = 0;
  for (std::uint64_t i = 0; i < calls; ++i) {
    // A chunk that the driver refuses twice at the end stays with the driver: no caller is left to
    // retry.
    for (std::uint64_t j = GetParam().closes ? i + 1 : i;; ++j) {
      SCOPED_TRACE(testing::Message() << "calls " << i << " and " << j + 1 << " fail");
      const auto arm = [&](Scene& scene) {
        scene.faults().FailCall(i);
        scene.second_faults().FailCall(j);
      };
      const Hits hits = RunWith(arm, Undo::kMayKeepFreeMemory);
      EXPECT_EQ(hits.first, 1u);
      ASSERT_FALSE(HasFailure());
      if (hits.second == 0) break;
      ++pairs;
    }
  }
  RecordProperty("fault_pairs", static_cast<int>(pairs));
  EXPECT_EQ(CountResources(), resources);
}

}  // namespace
}  // namespace thimble
