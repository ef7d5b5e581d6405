// Containers of modules, and the compression in them.
#include "tests/simgpu/driver/fat_binary.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"

namespace simgpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Decompressed(const std::string& block, std::size_t bytes) {
  std::vector<char> out(bytes);
  return DecompressLz4(block.data(), block.size(), &out) ? std::string(out.begin(), out.end())
                                                         : "refused";
}

TEST(Lz4, LiteralsAndMatches) {
  EXPECT_EQ(Decompressed("\x50hello", 5), "hello");
  // Three literals, then seven bytes from three before: they overlap what is written.
  EXPECT_EQ(Decompressed(std::string("\x33"
                                     "abc\x03\x00\x10!",
                                     8),
                         11),
            "abcabcabca!");
  const std::string text(300, 'x');
  EXPECT_EQ(Decompressed("\xf0\xff\x1e" + text, 300), text) << "15 + 255 + 30";
  // One literal, 19 + 255 + 6 bytes from one before, one literal.
  EXPECT_EQ(Decompressed(std::string("\x1f"
                                     "a\x01\x00\xff\x06\x10"
                                     "b",
                                     8),
                         282),
            std::string(281, 'a') + "b");
}

TEST(Lz4, NonsenseIsRefused) {
  for (const std::string& block : {std::string("\x50hell", 5), std::string("\xf0", 1),
                                   std::string("\x33"
                                               "abc\x03",
                                               5),
                                   std::string("\x33"
                                               "abc\x04\x00",
                                               6),
                                   std::string("\x33"
                                               "abc\x00\x00",
                                               6),
                                   std::string("\x50hello!", 7), std::string()}) {
    EXPECT_EQ(Decompressed(block, 5), "refused") << block;
  }
}

void AppendNumber(std::uint64_t number, std::size_t bytes, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), bytes);
}

// `bytes` 0: not compressed.
std::string Entry(int kind, int capability, const std::string& payload, std::size_t bytes = 0) {
  std::string entry;
  AppendNumber(static_cast<std::uint64_t>(kind), 2, &entry);
  AppendNumber(0x101, 2, &entry);
  AppendNumber(72, 4, &entry);  // longer than what is known of it
  AppendNumber(payload.size() + 3, 8, &entry);
  AppendNumber(bytes == 0 ? 0 : payload.size(), 4, &entry);
  AppendNumber(0, 4, &entry);
  AppendNumber(0, 4, &entry);
  AppendNumber(static_cast<std::uint64_t>(capability), 4, &entry);
  AppendNumber(0, 8, &entry);
  AppendNumber(bytes == 0 ? 0x11 : 0x2011, 8, &entry);
  AppendNumber(0, 8, &entry);
  AppendNumber(bytes, 8, &entry);
  AppendNumber(0, 8, &entry);
  return entry + payload + std::string(3, '\0');
}

std::vector<std::string> Read(const std::string& entries, int capability) {
  std::string image;
  AppendNumber(0xba55ed50, 4, &image);
  AppendNumber(1, 2, &image);
  AppendNumber(16, 2, &image);
  AppendNumber(entries.size(), 8, &image);
  image += entries;
  std::vector<std::string> all;
  for (const std::vector<char>& one : ReadFatBinary(image.data(), capability)) {
    all.emplace_back(one.data(), strnlen(one.data(), one.size()));
  }
  return all;
}

TEST(FatBinary, GivesTheImagesForTheGpu) {
  const std::string all = Entry(2, 60, "sixty") + Entry(1, 90, "text") + Entry(2, 80, "eighty") +
                          Entry(2, 80, "\x70second!", 7) + Entry(2, 90, "ninety");
  EXPECT_THAT(Read(all, 80), ElementsAre("eighty", "second!"));
  EXPECT_THAT(Read(all, 86), ElementsAre("eighty", "second!"));
  EXPECT_THAT(Read(all, 75), ElementsAre("sixty"));
  EXPECT_THAT(Read(all, 50), ElementsAre("sixty")) << "better than nothing";
  EXPECT_THAT(Read(all, 100), ElementsAre("ninety"));
  EXPECT_THAT(Read(Entry(1, 80, "text"), 80), IsEmpty());
  EXPECT_THAT(Read(Entry(2, 80, "\x70seco", 7), 80), IsEmpty());
  EXPECT_THAT(Read(Entry(2, 80, "cut").substr(0, 70), 80), IsEmpty());
  EXPECT_FALSE(
      IsFatBinary("\x7f"
                  "ELF"));
}

}  // namespace
}  // namespace simgpu
