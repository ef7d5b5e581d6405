// SeatTable: the same request finds the same seat, whatever the order; conflicts are what met.
#include "allocator/plan/seat_table.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr std::uint64_t kConv = 7;
constexpr std::uint64_t kRelu = 8;

class SeatTableTest : public testing::Test {
 protected:
  ~SeatTableTest() override { table_.CheckInvariants(); }

  SeatId Take(std::uint64_t key, std::uint64_t step, Bytes bytes = kMiB) {
    return table_.Take(key, step, bytes, season_);
  }
  void Vacate(SeatId id) { table_.Vacate(id, season_); }
  bool Conflict(SeatId a, SeatId b) const { return table_.conflicts().Has(a, b); }

  std::uint32_t season_ = 0;
  SeatTable table_;
};

TEST_F(SeatTableTest, WhoAsksDecidesNotWhen) {
  const SeatId conv = Take(kConv, 1);
  const SeatId relu = Take(kRelu, 1);
  Vacate(conv);
  Vacate(relu);
  EXPECT_EQ(Take(kRelu, 2), relu);
  EXPECT_EQ(Take(kConv, 2), conv);
  EXPECT_NE(Take(kConv, 2, 2 * kMiB), conv) << "another size is another asker";
}

TEST_F(SeatTableTest, OccurrencesCountWithinAStep) {
  const SeatId first = Take(kConv, 1);
  Vacate(first);
  const SeatId second = Take(kConv, 1);
  EXPECT_NE(second, first) << "the second time in the same step";
  Vacate(second);
  EXPECT_EQ(Take(kConv, 2), first);
  EXPECT_EQ(Take(kConv, 2), second);
}

TEST_F(SeatTableTest, ASeatThatIsStillTakenIsPassedOver) {
  const SeatId first = Take(kConv, 1);
  const SeatId other = Take(kConv, 2);
  EXPECT_NE(other, first);
  Vacate(first);
  EXPECT_EQ(Take(kConv, 3), first);
}

TEST_F(SeatTableTest, WithoutAStepTheLowestFreeSeatIsTaken) {
  std::vector<SeatId> seats;
  for (int i = 0; i < 100; ++i) seats.push_back(Take(0, 0));
  Vacate(seats[70]);
  Vacate(seats[3]);
  EXPECT_EQ(Take(0, 0), seats[3]);
  EXPECT_EQ(Take(0, 0), seats[70]);
  EXPECT_EQ(table_.size(), 100u);
}

TEST_F(SeatTableTest, AnUndoneRequestCountsForNothing) {
  const SeatId first = Take(kConv, 1);
  table_.Undo(first);
  EXPECT_EQ(Take(kConv, 1), first);
}

TEST_F(SeatTableTest, OnlyThoseWhoMetAreInConflict) {
  const SeatId a = Take(1, 1);
  const SeatId b = Take(2, 1);
  Vacate(a);
  const SeatId c = Take(3, 1);
  EXPECT_TRUE(Conflict(a, b));
  EXPECT_TRUE(Conflict(c, b));
  EXPECT_FALSE(Conflict(a, c));
  EXPECT_EQ(table_.new_conflicts(), 2u);
  Vacate(c);
  EXPECT_EQ(Take(3, 2), c);
  EXPECT_EQ(table_.new_conflicts(), 2u) << "nothing new";
}

TEST_F(SeatTableTest, SeatsThatNobodyTakesAreForgotten) {
  const SeatId held = Take(1, 1);
  const SeatId old = Take(2, 1);
  Vacate(old);
  season_ = 5;
  const SeatId recent = Take(3, 1);
  table_.ForgetBefore(5);
  EXPECT_EQ(table_.size(), 2u);
  EXPECT_TRUE(table_.Exists(held));
  EXPECT_TRUE(table_.Exists(recent));
  EXPECT_FALSE(table_.Exists(old));
  Vacate(held);
  Vacate(recent);
  const SeatId reused = Take(4, 1);
  EXPECT_EQ(reused, old) << "ids are used again";
  EXPECT_FALSE(Conflict(reused, held)) << "without what the old one met";
}

TEST_F(SeatTableTest, AFullTableRefusesNewSeatsAndServesOldOnes) {
  for (std::uint32_t i = 0; i < SeatTable::kMaxSeats; ++i) Vacate(Take(i + 1, 1));
  EXPECT_EQ(Take(SeatTable::kMaxSeats + 1, 1), kNoSeat);
  EXPECT_EQ(Take(1, 1), kNoSeat) << "the second time in this step needs a new one";
  EXPECT_NE(Take(1, 2), kNoSeat);
}

TEST_F(SeatTableTest, ARandomWalkKeepsTheInvariants) {
  workloads::Random random(3);
  std::vector<SeatId> taken;
  std::uint64_t step = 1;
  for (int i = 0; i < 4000; ++i) {
    if (random.Index(100) == 0) ++step;
    if (random.Index(500) == 0) {
      ++season_;
      if (season_ > 3) table_.ForgetBefore(season_ - 3);
      table_.CheckInvariants();
    }
    if (taken.empty() || random.Index(2) == 0) {
      taken.push_back(Take(random.Index(40), random.Index(4) == 0 ? 0 : step));
    } else {
      const std::size_t victim = random.Index(taken.size());
      Vacate(taken[victim]);
      taken[victim] = taken.back();
      taken.pop_back();
    }
  }
  Bytes bytes = 0;
  for (const SeatId id : taken) bytes += table_.seat(id).bytes;
  EXPECT_EQ(table_.taken_bytes(), bytes);
}

}  // namespace
}  // namespace thimble
