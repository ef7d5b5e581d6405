// Snapshot: pieces tile the home space, agree with the statistics, and are JSON.
#include "allocator/observe/snapshot.h"

#include <cctype>
#include <map>

#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

// Accepts exactly one JSON value; counts objects.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : at_(text.c_str()) {}
  bool ReadAll() { return Value() && *at_ == '\0'; }
  int objects() const { return objects_; }

 private:
  bool Literal(const char* word) {
    const std::size_t length = std::char_traits<char>::length(word);
    if (std::string(at_).compare(0, length, word) != 0) return false;
    at_ += length;
    return true;
  }
  bool Number() {
    const char* const begin = at_;
    while (std::isdigit(static_cast<unsigned char>(*at_)) != 0) ++at_;
    return at_ != begin;
  }
  bool Text() {
    if (*at_++ != '"') return false;
    while (*at_ != '"' && *at_ != '\0') ++at_;
    return *at_++ == '"';
  }
  bool Members(char close, bool named) {
    ++at_;
    if (*at_ == close) return ++at_, true;
    while (true) {
      if (named && (!Text() || *at_++ != ':')) return false;
      if (!Value()) return false;
      if (*at_ == close) return ++at_, true;
      if (*at_++ != ',') return false;
    }
  }
  bool Value() {
    switch (*at_) {
      case '{':
        ++objects_;
        return Members('}', /*named=*/true);
      case '[':
        return Members(']', /*named=*/false);
      case '"':
        return Text();
      default:
        return *at_ == 't' ? Literal("true") : Number();
    }
  }

  const char* at_;
  int objects_ = 0;
};

class SnapshotTest : public ArenaTest {
 protected:
  // A stitched block, small blocks, holes and free memory.
  void SetUp() override {
    Make(64 * kChunk);
    const std::vector<Address> blocks = Fill(16, kChunk);
    for (std::size_t i = 0; i < 12; i += 2) Free(blocks[i]);
    stitched_ = Allocate(3 * kChunk, kFirst, /*key=*/7);
    ASSERT_EQ(arena_->Query(stitched_)->seams, 2u);
    Trim(0);
    small_ = Allocate(kUnit, kFirst, /*key=*/9);
    Free(blocks[15]);
  }

  Address stitched_;
  Address small_;
};

TEST_F(SnapshotTest, PiecesTileTheHomeSpace) {
  const Snapshot snapshot = arena_->GetSnapshot();
  std::map<Snapshot::State, Bytes> bytes;
  Bytes at = 0;
  for (const Snapshot::Piece& piece : snapshot.pieces) {
    ASSERT_EQ(piece.offset, at);
    at += piece.bytes;
    bytes[piece.state] += piece.bytes;
  }
  const ArenaStats& stats = snapshot.stats;
  EXPECT_EQ(bytes[Snapshot::State::kUsed], stats.in_use + stats.magazines);
  EXPECT_EQ(bytes[Snapshot::State::kFree], stats.free_large + stats.free_small);
  EXPECT_EQ(bytes[Snapshot::State::kVacant], stats.vacant);
  EXPECT_GT(stats.vacant, 0u);
  EXPECT_EQ(snapshot.chunk_bytes, kChunk);
}

TEST_F(SnapshotTest, PiecesOfAStitchedBlockHaveOneOwnerAndKey) {
  std::map<Bytes, Bytes> by_owner;
  for (const Snapshot::Piece& piece : arena_->GetSnapshot().pieces) {
    if (!piece.stitched) continue;
    EXPECT_EQ(piece.key, 7u);
    by_owner[piece.owner] += piece.bytes;
  }
  ASSERT_EQ(by_owner.size(), 1u);
  EXPECT_EQ(by_owner.begin()->second, 3 * kChunk);
}

TEST_F(SnapshotTest, SmallBlocksAreInSlabs) {
  const Snapshot snapshot = arena_->GetSnapshot();
  for (const Snapshot::Piece& piece : snapshot.pieces) {
    if (snapshot.home_base + piece.offset != small_) continue;
    EXPECT_TRUE(piece.small);
    EXPECT_EQ(piece.key, 0u) << "threads pass small blocks on";
    EXPECT_EQ(piece.state, Snapshot::State::kUsed);
    return;
  }
  FAIL() << "the small block is in no piece";
}

TEST_F(SnapshotTest, IsJson) {
  const Snapshot snapshot = arena_->GetSnapshot();
  const std::string json = ToJson(snapshot);
  JsonReader reader(json);
  EXPECT_TRUE(reader.ReadAll()) << json;
  EXPECT_EQ(reader.objects(), static_cast<int>(2 + snapshot.pieces.size()));
  for (const char* part : {"\"home_base\":", "\"chunk_bytes\":16384",
                           "\"in_use\":", "\"reserved\":", "\"state\":\"vacant\"",
                           "\"stitched\":true", "\"small\":true"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST_F(SnapshotTest, AnEmptyArenaIsJsonToo) {
  Make(4 * kChunk);
  const std::string json = ToJson(arena_->GetSnapshot());
  EXPECT_TRUE(JsonReader(json).ReadAll()) << json;
  EXPECT_THAT(json, HasSubstr("\"pieces\":[]"));
}

}  // namespace
}  // namespace thimble
