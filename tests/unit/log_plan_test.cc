// The places of a plan in a log are the places of its requests.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "allocator/offline/logs/log_reader.h"
#include "gtest/gtest.h"
#include "tests/unit/arena_plan_fixture.h"

namespace thimble {
namespace {

class PlanInALog : public ArenaPlan {
 protected:
  void SetUp() override {
    MakeLearning();
    for (int i = 0; i < 20 && arena_->GetStats().plans == 0; ++i) {
      Step();
      arena_->WaitForPlans();
    }
    ASSERT_EQ(arena_->GetStats().plans, 1u);
  }

  // Requests of the log that were where its places say.
  std::uint64_t CountAtTheirPlaces() {
    EXPECT_TRUE(arena_->StopLog().ok());
    const std::vector<Event> events = ReadEventLog(path_).value();
    std::map<StreamId, Event> places;  // by site
    std::uint64_t found = 0;
    for (const Event& event : events) {
      if (event.kind == EventKind::kPlace) places[event.stream] = event;
      if (event.kind != EventKind::kAllocate) continue;
      found += std::any_of(places.begin(), places.end(), [&](const auto& place) {
        return place.second.key == event.key && place.second.address == event.address;
      });
    }
    return found;
  }

  const std::string path_ = testing::TempDir() + "/log";
};

TEST_F(PlanInALog, PlacesAreLoggedEvenIfThePlanIsOlder) {
  for (int log = 0; log < 2; ++log) {
    ASSERT_TRUE(arena_->StartLog(path_).ok());
    const std::uint64_t before = arena_->GetStats().plan_hits;
    for (int i = 0; i < 3; ++i) Step();
    const std::uint64_t hits = arena_->GetStats().plan_hits - before;
    EXPECT_EQ(hits, 3 * 28u);
    EXPECT_EQ(CountAtTheirPlaces(), hits);
  }
}

TEST_F(PlanInALog, ASiteThatMovesIsReportedAgain) {
  ASSERT_TRUE(arena_->StartLog(path_).ok());
  const PlanStats before = arena_->GetStats();
  ++step_;
  std::vector<Address> held;
  for (std::uint64_t key = 1; key <= 8; ++key) held.push_back(Ask(key, (key % 3 + 1) * kChunk));
  held.push_back(Ask(11, 2 * kChunk));
  Free(Ask(99, 4 * kChunk));  // there is memory past that of the plan
  // In other steps these come after one another, so that they share a place.
  for (std::uint64_t key = 12; key <= 30; ++key) Free(Ask(key, 2 * kChunk));
  for (const Address block : held) Free(block);
  const PlanStats after = arena_->GetStats();
  EXPECT_GT(after.plan_repairs, before.plan_repairs);
  EXPECT_EQ(after.plan_hits - before.plan_hits, 28u);
  EXPECT_EQ(CountAtTheirPlaces(), 28u);
}

}  // namespace
}  // namespace thimble
