// The mappings, names, limits and refusals in a log are those of the arena. Replays the mappings
// and compares them with a snapshot of the arena.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_summary.h"
#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogMappings : public ArenaTest {
 protected:
  void Start() { ASSERT_TRUE(arena_->StartLog(path_, /*most_events=*/0).ok()); }
  LogContents Stop() {
    EXPECT_TRUE(arena_->StopLog().ok());
    return ReadLog(path_).value();
  }

  // Where chunks are at home and behind aliases after all events, by address.
  struct Mapped {
    std::set<Address> home;
    std::map<Address, Address> alias;  // to home
  };
  static Mapped Replay(const LogContents& log) {
    Mapped mapped;
    for (const Event& event : log.events) {
      for (Bytes at = 0; at < event.bytes; at += kChunk) {
        const Address address = Address(event.address) + at;
        if (event.kind == EventKind::kMap) {
          EXPECT_TRUE(mapped.home.insert(address).second) << "mapped twice";
        } else if (event.kind == EventKind::kUnmap) {
          EXPECT_EQ(mapped.home.erase(address), 1u) << "nothing was mapped there";
        } else if (event.kind == EventKind::kAlias) {
          EXPECT_EQ(mapped.home.count(Address(event.key) + at), 1u) << "an alias of nothing";
          EXPECT_TRUE(mapped.alias.emplace(address, Address(event.key) + at).second);
        } else if (event.kind == EventKind::kUnalias) {
          EXPECT_EQ(mapped.alias.erase(address), 1u);
        } else {
          break;
        }
      }
    }
    return mapped;
  }

  // As the arena says itself.
  std::set<Address> Home() {
    const Snapshot snapshot = arena_->GetSnapshot();
    std::set<Address> home;
    for (const Snapshot::Piece& piece : snapshot.pieces) {
      if (piece.state == Snapshot::State::kVacant) continue;
      const Bytes first = piece.offset / kChunk;
      const Bytes last = (piece.offset + piece.bytes - 1) / kChunk;
      for (Bytes slot = first; slot <= last; ++slot) {
        home.insert(snapshot.home_base + slot * kChunk);
      }
    }
    return home;
  }

  const std::string path_ = testing::TempDir() + "/log_mappings_test.log";
};

TEST_F(LogMappings, MappingsAreThoseOfTheArena) {
  Make(64 * kChunk);
  Start();
  std::vector<Address> blocks = Fill(16, kChunk);
  for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  ASSERT_TRUE(arena_->SetLimit(stats().reserved).ok());
  const Address stitched = Allocate(6 * kChunk);
  ASSERT_EQ(stats().stitches, 1u);
  const std::set<Address> home = Home();
  const LogContents log = Stop();
  const Mapped mapped = Replay(log);
  EXPECT_EQ(mapped.home, home);
  // The block is made of chunks at home, all different.
  std::set<Address> pieces;
  for (Bytes at = 0; at < 6 * kChunk; at += kChunk) {
    ASSERT_EQ(mapped.alias.count(stitched + at), 1u);
    pieces.insert(mapped.alias.at(stitched + at));
  }
  EXPECT_EQ(pieces.size(), 6u);
  Free(stitched);
  for (std::size_t i = 1; i < blocks.size(); i += 2) Free(blocks[i]);
}

TEST_F(LogMappings, MemoryGivenBackIsLoggedInWholeRuns) {
  Make(64 * kChunk);
  Start();
  for (const Address block : Fill(16, kChunk)) Free(block);
  Trim(0);
  const LogContents log = Stop();
  EXPECT_TRUE(Replay(log).home.empty());
  int runs = 0;
  for (const Event& event : log.events) runs += event.kind == EventKind::kUnmap ? 1 : 0;
  EXPECT_EQ(runs, 1) << "neighbours go together";
}

TEST_F(LogMappings, ALogThatBeginsLateBeginsWithAllPresentState) {
  Make(64 * kChunk);
  std::vector<Address> blocks = Fill(16, kChunk);
  for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  ASSERT_TRUE(arena_->SetLimit(stats().reserved).ok());
  const Address stitched = Allocate(6 * kChunk);
  const std::uint64_t key = arena_->Remember("dense/MatMul");
  Start();
  const std::set<Address> home = Home();
  const LogContents log = Stop();
  const Mapped mapped = Replay(log);
  EXPECT_EQ(mapped.home, home);
  EXPECT_EQ(mapped.alias.count(stitched), 1u);
  EXPECT_EQ(log.names.at(key), "dense/MatMul");
  Event before = {};
  for (const Event& event : log.events) {
    if (event.kind != EventKind::kMap) continue;
    const bool is_next = before.address + before.bytes == event.address;
    EXPECT_FALSE(is_next && before.key == event.key) << "neighbours go together";
    before = event;
  }
  Free(stitched);
  for (std::size_t i = 1; i < blocks.size(); i += 2) Free(blocks[i]);
}

TEST_F(LogMappings, RandomWorkKeepsMappingsTrue) {
  Make(96 * kChunk);
  Start();
  std::vector<Address> live;
  std::uint64_t random = 1;
  for (int i = 0; i < 4000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const Bytes bytes = 1 + (random >> 40) % (6 * kChunk);
    if (live.size() < 24) {
      const auto block = arena_->Allocate({bytes, 0, kFirst, /*key=*/0});
      if (block.ok()) live.push_back(*block);
    } else {
      std::swap(live[(random >> 33) % live.size()], live.back());
      Free(live.back());
      live.pop_back();
    }
    if (i % 500 == 0) Trim(0);
  }
  ASSERT_GT(stats().stitches, 10u);
  const std::set<Address> home = Home();
  EXPECT_EQ(Replay(Stop()).home, home);
  for (const Address block : live) Free(block);
}

TEST_F(LogMappings, NamesAreLoggedOnce) {
  Make(8 * kChunk);
  Start();
  const std::uint64_t key = arena_->Remember("a/Relu");
  EXPECT_EQ(arena_->Remember("a/Relu"), key);
  EXPECT_EQ(arena_->Remember(""), 0u);
  const LogContents log = Stop();
  EXPECT_EQ(log.names.size(), 1u);
  EXPECT_EQ(log.names.at(key), "a/Relu");
  EXPECT_EQ(log.records, log.events.size() + 2);
  EXPECT_STREQ(arena_->NameOf(key), "a/Relu");
}

TEST_F(LogMappings, LimitsAreLogged) {
  Make(8 * kChunk);
  Start();
  ASSERT_TRUE(arena_->SetLimit(4 * kChunk).ok());
  const LogContents log = Stop();
  std::vector<Bytes> limits;
  for (const Event& event : log.events) {
    if (event.kind == EventKind::kLimit) limits.push_back(event.bytes);
  }
  EXPECT_THAT(limits, ElementsAre(8 * kChunk, 4 * kChunk));
  EXPECT_EQ(Summarize(log).limit, 4 * kChunk);
}

TEST_F(LogMappings, ARefusalIsExplainedOnceUntilItIsServed) {
  Make(8 * kChunk);
  Start();
  const auto held = arena_->Allocate({6 * kChunk, 0, kFirst, arena_->Remember("encoder/MatMul")});
  ASSERT_TRUE(held.ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(TryAllocate(4 * kChunk).ok());
  EXPECT_FALSE(TryAllocate(5 * kChunk).ok());
  Free(*held);
  Free(Allocate(5 * kChunk));
  const Address again = Allocate(6 * kChunk);
  EXPECT_FALSE(TryAllocate(5 * kChunk).ok());
  const LogContents log = Stop();
  ASSERT_EQ(log.texts.size(), 3u);
  EXPECT_THAT(log.texts[0], HasSubstr("requested  64.00 KiB\n"));
  EXPECT_THAT(log.texts[0], HasSubstr("holders    96.00 KiB encoder/MatMul\n"));
  EXPECT_EQ(Summarize(log).out_of_memory, 3u);
  Free(again);
}

TEST_F(LogMappings, EvictionsAndFetchesAreLogged) {
  constexpr Bytes kBlock = 8 * kChunk;
  ArenaOptions options;
  options.swap = SwapMode::kAuto;
  Make(2 * kBlock, options);
  Start();
  const Address first = Allocate(kBlock);
  const Address second = Allocate(kBlock);
  for (const Address block : {first, second}) {
    ASSERT_TRUE(arena_->Pin({block}, {/*key=*/1, /*step=*/1}).ok());
    ASSERT_TRUE(arena_->Unpin({block}, {}, kFirst, false).ok());
  }
  const Address third = Allocate(kBlock);  // one of the two leaves
  ASSERT_EQ(stats().swapped, kBlock);
  Free(third);
  for (const Address block : {first, second}) {  // and comes back for an op that needs it
    ASSERT_TRUE(arena_->Pin({block}, {/*key=*/1, /*step=*/2}).ok());
    ASSERT_TRUE(arena_->Unpin({block}, {}, kFirst, false).ok());
  }
  const LogContents log = Stop();
  std::vector<Event> moves;
  for (const Event& event : log.events) {
    if (event.kind == EventKind::kEvict || event.kind == EventKind::kFetch) moves.push_back(event);
  }
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].kind, EventKind::kEvict);
  EXPECT_EQ(moves[1].kind, EventKind::kFetch);
  EXPECT_EQ(moves[0].address, moves[1].address);
  EXPECT_EQ(moves[0].bytes, kBlock);
  EXPECT_EQ(moves[1].key, 1u) << "the op waited for it";
  Replay(log);
  Free(first);
  Free(second);
}

}  // namespace
}  // namespace thimble
