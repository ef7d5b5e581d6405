// Magazine and MagazineRack: one stream, bounded, handed on when a thread ends.
#include "allocator/arena/magazine.h"

#include <set>
#include <thread>

#include "gtest/gtest.h"

namespace thimble {
namespace {

constexpr StreamId kStream{1};
constexpr StreamId kOther{2};
constexpr Bytes kCapacity = 4 * kMiB;

class MagazineTest : public testing::Test {
 protected:
  MagazineTest() : marks_(SmallMarks::Create(kCapacity, 64 * kKiB).value()) {}

  // Frees the block at unit `unit`, as an arena does; addresses are offsets plus one unit.
  Magazine::Pushed Push(Bytes unit, int size_class = 0, StreamId stream = kStream) {
    marks_->SetInUse(unit * kUnit, size_class);
    return PushMarked(unit, size_class, stream);
  }
  Magazine::Pushed PushMarked(Bytes unit, int size_class = 0, StreamId stream = kStream) {
    return magazine_.Push(size_class, stream, AddressOf(unit), unit * kUnit, marks_.get(), waiters_,
                          [&] { ++reports_; });
  }
  static Address AddressOf(Bytes unit) { return Address((unit + 1) * kUnit); }

  std::unique_ptr<SmallMarks> marks_;
  std::atomic<int> waiters_{0};
  Magazine magazine_;
  int reports_ = 0;
};

TEST_F(MagazineTest, GivesBackWhatWasFreedLast) {
  ASSERT_EQ(Push(3), Magazine::Pushed::kCached);
  ASSERT_EQ(Push(5), Magazine::Pushed::kCached);
  EXPECT_EQ(magazine_.Pop(0, kStream), AddressOf(5));
  EXPECT_EQ(magazine_.Pop(0, kStream), AddressOf(3));
  EXPECT_EQ(magazine_.Pop(0, kStream), Address());
  EXPECT_EQ(magazine_.contents().served, 2u);
  EXPECT_EQ(reports_, 2);
}

TEST_F(MagazineTest, ClassesDoNotMix) {
  ASSERT_EQ(Push(3, /*size_class=*/2), Magazine::Pushed::kCached);
  EXPECT_EQ(magazine_.Pop(1, kStream), Address());
  EXPECT_EQ(magazine_.Pop(2, kStream), AddressOf(3));
}

// M1
TEST_F(MagazineTest, BelongsToOneStreamUntilItIsEmpty) {
  ASSERT_EQ(Push(3), Magazine::Pushed::kCached);
  EXPECT_EQ(Push(4, 0, kOther), Magazine::Pushed::kNoRoom);
  EXPECT_EQ(magazine_.Pop(0, kOther), Address());
  EXPECT_EQ(magazine_.Pop(0, kStream), AddressOf(3));
  EXPECT_EQ(PushMarked(4, 0, kOther), Magazine::Pushed::kCached);
  EXPECT_EQ(magazine_.Pop(0, kOther), AddressOf(4));
}

// M2
TEST_F(MagazineTest, CountsWhatItHolds) {
  Push(1, 0);
  Push(2, 15);
  EXPECT_EQ(magazine_.contents().bytes, 17 * kUnit);
  EXPECT_EQ(magazine_.contents().blocks, 2u);
  magazine_.Pop(15, kStream);
  EXPECT_EQ(magazine_.contents().bytes, kUnit);
}

TEST_F(MagazineTest, IsBounded) {
  for (int size_class = 0; size_class < kMarkClasses; ++size_class) {
    for (int i = 0; i < MagazineDepth(size_class); ++i) {
      ASSERT_EQ(Push(i, size_class), Magazine::Pushed::kCached) << i;
    }
    EXPECT_EQ(Push(16'000, size_class), Magazine::Pushed::kNoRoom);
  }
  EXPECT_LE(magazine_.contents().bytes, kMarkClasses * kMagazineBytesPerClass);
}

TEST_F(MagazineTest, ABlockThatIsNotInUseIsNotTaken) {
  ASSERT_EQ(Push(3), Magazine::Pushed::kCached);
  EXPECT_EQ(PushMarked(3), Magazine::Pushed::kNotInUse);
  EXPECT_EQ(reports_, 1);
}

TEST_F(MagazineTest, TakesNothingWhileAThreadWaitsForMemory) {
  waiters_ = 1;
  EXPECT_EQ(Push(3), Magazine::Pushed::kNoRoom);
}

TEST_F(MagazineTest, EmptyingCallsForEveryBlock) {
  for (Bytes unit = 0; unit < 40; ++unit) Push(unit, static_cast<int>(unit % 4));
  std::set<Address> freed;
  magazine_.Empty([&](Address address, StreamId stream) {
    EXPECT_EQ(stream, kStream);
    return freed.insert(address).second;
  });
  EXPECT_EQ(freed.size(), 40u);
  EXPECT_EQ(magazine_.contents().bytes, 0u);
}

TEST_F(MagazineTest, BlocksNotTakenWhenEmptyingStay) {
  for (Bytes unit = 0; unit < 10; ++unit) Push(unit);
  int taken = 0;
  magazine_.Empty([&](Address, StreamId) { return ++taken <= 3; });
  EXPECT_EQ(magazine_.contents().blocks, 7u);
  EXPECT_EQ(magazine_.contents().bytes, 7 * kUnit);
  EXPECT_NE(magazine_.Pop(0, kStream), Address());
}

// --- MagazineRack --------------------------------------------------------------------------------

int CountMagazines(MagazineRack* rack) {
  int count = 0;
  rack->ForEach([&](Magazine&) { ++count; });
  return count;
}

TEST(MagazineRack, AThreadKeepsItsMagazine) {
  MagazineRack rack;
  Magazine* const mine = rack.Mine();
  EXPECT_EQ(rack.Mine(), mine);
  Magazine* other = nullptr;
  std::thread([&] { other = rack.Mine(); }).join();
  EXPECT_NE(other, mine);
  EXPECT_EQ(rack.Mine(), mine);
}

TEST(MagazineRack, AThreadHasOneMagazineOfEveryRack) {
  MagazineRack a;
  MagazineRack b;
  Magazine* const in_a = a.Mine();
  Magazine* const in_b = b.Mine();
  EXPECT_NE(in_a, in_b);
  EXPECT_EQ(a.Mine(), in_a);
  EXPECT_EQ(b.Mine(), in_b);
}

TEST(MagazineRack, AThreadThatEndsHandsItsMagazineOn) {
  MagazineRack rack;
  std::set<Magazine*> seen;
  for (int i = 0; i < 20; ++i) std::thread([&] { seen.insert(rack.Mine()); }).join();
  EXPECT_EQ(seen.size(), 1u) << "one after another, all used the same";
  EXPECT_EQ(CountMagazines(&rack), 1);
}

TEST(MagazineRack, AThreadMayOutliveTheRack) {
  auto rack = std::make_unique<MagazineRack>();
  std::atomic<int> step{0};
  std::thread thread([&] {
    rack->Mine();
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  rack.reset();
  step = 2;
  thread.join();  // the rack that its magazine belongs to is gone
}

TEST(MagazineRack, ANewRackAtTheSamePlaceIsAnother) {
  for (int i = 0; i < 10; ++i) {
    MagazineRack rack;
    rack.Mine();
    EXPECT_EQ(CountMagazines(&rack), 1);
  }
}

}  // namespace
}  // namespace thimble
