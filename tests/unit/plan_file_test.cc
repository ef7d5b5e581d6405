// Plan files: reads back what was written, and refuses all else.
#include "allocator/plan/plan_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "allocator/base/stable_hash.h"
#include "allocator/base/whole_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHeaderBytes = 40;
constexpr std::size_t kRecordBytes = 32;

Learned SomeSites(std::size_t count) {
  Learned learned;
  learned.chunk_bytes = 2 * kMiB;
  for (std::size_t i = 0; i < count; ++i) {
    learned.sites.push_back({i / 2, (i + 1) * kMiB, i > 0, i % 3 == 0 ? kNoPlace : i * kMiB});
  }
  learned.conflicts.resize(count * learned.row_words());
  for (std::size_t i = 1; i < count; ++i) learned.AddConflict(i, i / 2);
  return learned;
}

// `file` with `bytes` at `at`, and the checksum that belongs to it.
std::string Changed(std::string file, std::size_t at, const std::string& bytes) {
  file.replace(at, bytes.size(), bytes);
  const std::uint64_t checksum = StableHash(absl::string_view(file).substr(kHeaderBytes));
  file.replace(kHeaderBytes - sizeof(checksum), sizeof(checksum),
               std::string(reinterpret_cast<const char*>(&checksum), sizeof(checksum)));
  return file;
}

std::string Refusal(const std::string& file) {
  const auto learned = DecodeLearned(file);
  EXPECT_FALSE(learned.ok());
  EXPECT_EQ(learned.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(learned.status().message());
}

TEST(PlanFile, IsReadBackAsItWasWritten) {
  for (const std::size_t count : {0, 1, 2, 63, 64, 65, 200}) {
    const Learned learned = SomeSites(count);
    const auto read = DecodeLearned(EncodeLearned(learned));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->chunk_bytes, learned.chunk_bytes);
    EXPECT_EQ(read->conflicts, learned.conflicts);
    ASSERT_EQ(read->sites.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(read->sites[i].key, learned.sites[i].key);
      EXPECT_EQ(read->sites[i].bytes, learned.sites[i].bytes);
      EXPECT_EQ(read->sites[i].recurs, learned.sites[i].recurs);
      EXPECT_EQ(read->sites[i].place, learned.sites[i].place);
    }
  }
}

TEST(PlanFile, OthersAreRefusedWithTheReason) {
  const std::string file = EncodeLearned(SomeSites(3));
  EXPECT_THAT(Refusal(""), HasSubstr("shorter than its header"));
  EXPECT_THAT(Refusal(std::string(100, 'x')), HasSubstr("is not a plan file of Thimble"));
  EXPECT_THAT(Refusal(Changed(file, 8, "\x02")), HasSubstr("version 2"));
  EXPECT_THAT(Refusal(file.substr(0, file.size() - 1)), HasSubstr("instead of"));
  EXPECT_THAT(Refusal(file + "x"), HasSubstr("instead of"));
  EXPECT_THAT(Refusal(Changed(file, 26, "\x01")), HasSubstr("65539 sites are more than 16384"));
  std::string flipped = file;
  flipped[kHeaderBytes] ^= 1;
  EXPECT_THAT(Refusal(flipped), HasSubstr("checksum"));
}

TEST(PlanFile, NonsenseWithARightChecksumIsRefused) {
  const std::string file = EncodeLearned(SomeSites(3));
  const std::size_t second = kHeaderBytes + kRecordBytes;
  EXPECT_THAT(Refusal(Changed(file, second + 8, std::string(8, '\0'))),
              HasSubstr("site 1 has 0 bytes"));
  EXPECT_THAT(Refusal(Changed(file, second + 8, "\x01")), HasSubstr("site 1 has 2097153 bytes"));
  EXPECT_THAT(Refusal(Changed(file, second + 14, "\x01")), HasSubstr("site 1 has"));
  EXPECT_THAT(Refusal(Changed(file, second + 16, "\x02")), HasSubstr("no flag"));
  EXPECT_THAT(Refusal(Changed(file, second + 24, "\x01")), HasSubstr("the place 1048577"));
  EXPECT_THAT(Refusal(Changed(file, second + 31, "\x40")), HasSubstr("the place"));
  const std::size_t rows = kHeaderBytes + 3 * kRecordBytes;
  EXPECT_THAT(Refusal(Changed(file, rows, "\x03")), HasSubstr("site 0 is in conflict with itself"));
  EXPECT_THAT(Refusal(Changed(file, rows, std::string(1, '\0'))), HasSubstr("disagree"));
  EXPECT_THAT(Refusal(Changed(file, rows + 7, "\x80")), HasSubstr("conflict with site 63"));
}

TEST(PlanFile, IsWrittenWholeOrNotAtAll) {
  const std::string folder = testing::TempDir() + "/plan_file_test";
  mkdir(folder.c_str(), 0700);
  const std::string path = folder + "/plan";
  ASSERT_TRUE(WritePlanFile(SomeSites(5), path).ok());
  ASSERT_TRUE(WritePlanFile(SomeSites(6), path).ok()) << "over the old one";
  const auto read = ReadPlanFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sites.size(), 6u);

  const std::string nowhere = folder + "/missing/plan";
  EXPECT_THAT(std::string(WritePlanFile(SomeSites(1), nowhere).message()), HasSubstr(nowhere));
  EXPECT_EQ(ReadPlanFile(nowhere).status().code(), absl::StatusCode::kNotFound);
  const std::string is_folder = folder + "/folder";
  mkdir(is_folder.c_str(), 0700);
  EXPECT_THAT(std::string(WritePlanFile(SomeSites(1), is_folder).message()), HasSubstr(is_folder));
  std::ofstream(path) << "something else";
  EXPECT_THAT(std::string(ReadPlanFile(path).status().message()), HasSubstr(path));
}

TEST(PlanFile, NoMoreIsReadThanAPlanCanHave) { EXPECT_FALSE(ReadPlanFile("/dev/zero").ok()); }

TEST(StableHash, NeverChanges) {
  EXPECT_EQ(StableHash(""), StableHash(absl::string_view()));
  EXPECT_EQ(StableHash("model/dense/MatMul"), 5659398348727904048u);
  EXPECT_NE(StableHash("a"), StableHash(absl::string_view("a\0", 2)));
  EXPECT_NE(StableHash("abcdefgh1"), StableHash("abcdefgh2"));
}

}  // namespace
}  // namespace thimble
