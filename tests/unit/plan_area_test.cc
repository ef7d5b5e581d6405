// PlanArea: cells between borders, open or not.
#include "allocator/plan/plan_area.h"

#include <vector>

#include "gtest/gtest.h"

namespace thimble {
namespace {

class PlanAreaTest : public testing::Test {
 protected:
  PlanAreaTest() { area_.Reset({40, 10, 20, 10, 30}); }

  bool IsOpen(Extent place) const { return area_.IsOpen(area_.CellsOf(place)); }
  void Open(Extent place) { area_.Open(area_.CellsOf(place)); }

  // What is asked for when `place` is to be opened.
  std::vector<Extent> Rest(Extent place, bool answer) {
    std::vector<Extent> asked;
    const bool all = area_.OpenRest(area_.CellsOf(place), [&](Extent extent) {
      asked.push_back(extent);
      return answer;
    });
    EXPECT_EQ(all, answer || asked.empty());
    return asked;
  }

  PlanArea area_;
};

TEST_F(PlanAreaTest, IsClosedAtFirst) {
  EXPECT_FALSE(IsOpen({10, 20}));
  EXPECT_EQ(area_.OpenBytes(), 0u);
}

TEST_F(PlanAreaTest, APlaceIsOpenIfAllItsCellsAre) {
  Open({10, 20});
  Open({30, 40});
  EXPECT_TRUE(IsOpen({10, 20}));
  EXPECT_FALSE(IsOpen({10, 30}));
  Open({20, 30});
  EXPECT_TRUE(IsOpen({10, 40}));
  area_.Close(area_.CellsOf({20, 40}));
  EXPECT_TRUE(IsOpen({10, 20}));
  EXPECT_FALSE(IsOpen({10, 40}));
  EXPECT_EQ(area_.OpenBytes(), 10u);
  area_.CloseAll();
  EXPECT_EQ(area_.OpenBytes(), 0u);
}

TEST_F(PlanAreaTest, OnlyClosedCellsAreAskedFor) {
  Open({20, 30});
  const std::vector<Extent> asked = Rest({10, 40}, /*answer=*/true);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].begin, 10u);
  EXPECT_EQ(asked[0].end, 20u);
  EXPECT_EQ(asked[1].begin, 30u);
  EXPECT_EQ(asked[1].end, 40u);
  EXPECT_TRUE(IsOpen({10, 40}));
  EXPECT_TRUE(Rest({10, 40}, /*answer=*/false).empty());
}

TEST_F(PlanAreaTest, ARefusalEndsTheAskingAndOpensNothing) {
  Open({20, 30});
  EXPECT_EQ(Rest({10, 40}, /*answer=*/false).size(), 1u);
  EXPECT_EQ(area_.OpenBytes(), 10u);
}

TEST_F(PlanAreaTest, ANewBorderCutsACellWithoutChangingIt) {
  Open({10, 20});
  EXPECT_EQ(area_.AddBorder(15), 1u);
  EXPECT_EQ(area_.AddBorder(35), 4u);
  EXPECT_EQ(area_.AddBorder(15), std::nullopt) << "there is one";
  EXPECT_TRUE(IsOpen({10, 15}));
  EXPECT_TRUE(IsOpen({15, 20}));
  EXPECT_FALSE(IsOpen({20, 30}));
  EXPECT_FALSE(IsOpen({30, 35}));
  EXPECT_EQ(area_.OpenBytes(), 10u);
}

TEST_F(PlanAreaTest, BordersBeyondTheEndsAddClosedCells) {
  Open({10, 40});
  EXPECT_EQ(area_.AddBorder(0), 0u);
  EXPECT_EQ(area_.AddBorder(50), 5u);
  EXPECT_FALSE(IsOpen({0, 10}));
  EXPECT_TRUE(IsOpen({10, 40}));
  EXPECT_FALSE(IsOpen({40, 50}));
  EXPECT_EQ(area_.OpenBytes(), 30u);
}

TEST(EmptyPlanArea, GrowsFromItsFirstBorder) {
  PlanArea floor;
  EXPECT_EQ(floor.AddBorder(20), 0u);
  EXPECT_EQ(floor.AddBorder(30), 1u);
  floor.Open(floor.CellsOf({20, 30}));
  EXPECT_EQ(floor.OpenBytes(), 10u);
}

}  // namespace
}  // namespace thimble
