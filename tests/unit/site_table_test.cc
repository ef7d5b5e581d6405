// SiteTable: the same request finds the same site in any order; sites in use together conflict.
#include "allocator/plan/site_table.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr std::uint64_t kConv = 7;
constexpr std::uint64_t kRelu = 8;

class SiteTableTest : public testing::Test {
 protected:
  ~SiteTableTest() override { table_.CheckInvariants(); }

  SiteId Take(std::uint64_t key, std::uint64_t step, Bytes bytes = kMiB) {
    return table_.Take(key, step, bytes, round_);
  }
  void Vacate(SiteId id) { table_.Vacate(id, round_); }
  bool Conflict(SiteId a, SiteId b) const { return table_.conflicts().Has(a, b); }

  std::uint32_t round_ = 0;
  SiteTable table_;
};

TEST_F(SiteTableTest, TheCallerDecidesNotTheTime) {
  const SiteId conv = Take(kConv, 1);
  const SiteId relu = Take(kRelu, 1);
  Vacate(conv);
  Vacate(relu);
  EXPECT_EQ(Take(kRelu, 2), relu);
  EXPECT_EQ(Take(kConv, 2), conv);
  EXPECT_NE(Take(kConv, 2, 2 * kMiB), conv) << "another size is another caller";
}

TEST_F(SiteTableTest, OccurrencesCountWithinAStep) {
  const SiteId first = Take(kConv, 1);
  Vacate(first);
  const SiteId second = Take(kConv, 1);
  EXPECT_NE(second, first) << "the second time in the same step";
  Vacate(second);
  EXPECT_EQ(Take(kConv, 2), first);
  EXPECT_EQ(Take(kConv, 2), second);
}

TEST_F(SiteTableTest, ASiteThatIsStillTakenIsPassedOver) {
  const SiteId first = Take(kConv, 1);
  const SiteId other = Take(kConv, 2);
  EXPECT_NE(other, first);
  Vacate(first);
  EXPECT_EQ(Take(kConv, 3), first);
}

TEST_F(SiteTableTest, WithoutAStepTheLowestFreeSiteIsTaken) {
  std::vector<SiteId> sites;
  for (int i = 0; i < 100; ++i) sites.push_back(Take(0, 0));
  Vacate(sites[70]);
  Vacate(sites[3]);
  EXPECT_EQ(Take(0, 0), sites[3]);
  EXPECT_EQ(Take(0, 0), sites[70]);
  EXPECT_EQ(table_.size(), 100u);
}

TEST_F(SiteTableTest, AnUndoneRequestCountsForNothing) {
  const SiteId first = Take(kConv, 1);
  table_.Undo(first);
  EXPECT_EQ(Take(kConv, 1), first);
}

TEST_F(SiteTableTest, OnlySitesInUseTogetherAreInConflict) {
  const SiteId a = Take(1, 1);
  const SiteId b = Take(2, 1);
  Vacate(a);
  const SiteId c = Take(3, 1);
  EXPECT_TRUE(Conflict(a, b));
  EXPECT_TRUE(Conflict(c, b));
  EXPECT_FALSE(Conflict(a, c));
  EXPECT_EQ(table_.new_conflicts(), 2u);
  Vacate(c);
  EXPECT_EQ(Take(3, 2), c);
  EXPECT_EQ(table_.new_conflicts(), 2u) << "nothing new";
}

TEST_F(SiteTableTest, UnusedSitesAreForgotten) {
  const SiteId held = Take(1, 1);
  const SiteId old = Take(2, 1);
  Vacate(old);
  round_ = 5;
  const SiteId recent = Take(3, 1);
  table_.ForgetBefore(5);
  EXPECT_EQ(table_.size(), 2u);
  EXPECT_TRUE(table_.Exists(held));
  EXPECT_TRUE(table_.Exists(recent));
  EXPECT_FALSE(table_.Exists(old));
  Vacate(held);
  Vacate(recent);
  const SiteId reused = Take(4, 1);
  EXPECT_EQ(reused, old) << "ids are used again";
  EXPECT_FALSE(Conflict(reused, held)) << "without what the old one met";
}

TEST_F(SiteTableTest, AFullTableRefusesNewSitesAndServesOldOnes) {
  for (std::uint32_t i = 0; i < SiteTable::kMaxSites; ++i) Vacate(Take(i + 1, 1));
  EXPECT_EQ(Take(SiteTable::kMaxSites + 1, 1), kNoSite);
  EXPECT_EQ(Take(1, 1), kNoSite) << "the second time in this step needs a new one";
  EXPECT_NE(Take(1, 2), kNoSite);
}

TEST_F(SiteTableTest, ARandomWalkKeepsTheInvariants) {
  workloads::Random random(3);
  std::vector<SiteId> taken;
  std::uint64_t step = 1;
  for (int i = 0; i < 4000; ++i) {
    if (random.Index(100) == 0) ++step;
    if (random.Index(500) == 0) {
      ++round_;
      if (round_ > 3) table_.ForgetBefore(round_ - 3);
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
  for (const SiteId id : taken) bytes += table_.site(id).bytes;
  EXPECT_EQ(table_.taken_bytes(), bytes);
}

}  // namespace
}  // namespace thimble
