// Names for keys, and where they are in the report.
#include "tf_plugin/oom_text.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"
#include "tf_plugin/key_names.h"

namespace thimble::tf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(KeyNames, ANameIsFoundByItsKey) {
  KeyNames names;
  EXPECT_EQ(names.Remember(""), 0u);
  const std::uint64_t key = names.Remember("a/MatMul");
  EXPECT_NE(key, 0u);
  EXPECT_EQ(names.Remember("a/MatMul"), key);
  EXPECT_NE(names.Remember("b/MatMul"), key);
  EXPECT_EQ(names.NameOf(key), "a/MatMul");
  EXPECT_EQ(names.NameOf(0), "");
  EXPECT_EQ(names.NameOf(key + 2), "");
}

TEST(KeyNames, ATableThatIsFullForgetsNamesAndKeepsKeys) {
  KeyNames names;
  std::size_t named = 0;
  for (std::size_t i = 0; i < 2 * KeyNames::kPlaces; ++i) {
    const std::string name = "op" + std::to_string(i);
    const std::uint64_t key = names.Remember(name);
    EXPECT_EQ(names.Remember(name), key);
    const std::string found = names.NameOf(key);
    EXPECT_TRUE(found == name || found.empty()) << found;
    named += found.empty() ? 0 : 1;
  }
  EXPECT_LE(named, KeyNames::kPlaces);
  EXPECT_GT(named, KeyNames::kPlaces * 9 / 10);
}

TEST(KeyNames, LongNamesAreCut) {
  KeyNames names;
  const std::string name(10000, 'x');
  EXPECT_EQ(names.NameOf(names.Remember(name)), name.substr(0, KeyNames::kLongestName));
}

TEST(KeyNames, ThreadsAgree) {
  KeyNames names;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 1000; ++i) {
        const std::string name = "op" + std::to_string(i);
        const std::string found = names.NameOf(names.Remember(name));
        // Another thread may be about to write it.
        EXPECT_TRUE(found == name || found.empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "op" + std::to_string(i);
    EXPECT_EQ(names.NameOf(names.Remember(name)), name);
  }
}

// Holds `bytes` for `key`, in a number of blocks, until the arena goes.
void Hold(const HostArena& arena, std::size_t bytes, int blocks, std::uint64_t key) {
  for (int i = 0; i < blocks; ++i) {
    void* block = nullptr;
    ASSERT_EQ(thimble_allocate(arena.get(), bytes, 0, 0, key, &block), THIMBLE_OK);
  }
}

TEST(OomText, IsTheReportOfTheCoreWithNames) {
  const HostArena arena("memory:64MiB,limit:16MiB");
  KeyNames names;
  Hold(arena, 8 * kMiB, 1, names.Remember("encoder/MatMul"));
  Hold(arena, 2 * kMiB, 3, 0);
  void* block = nullptr;
  ASSERT_EQ(thimble_allocate(arena.get(), 4 * kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY);
  EXPECT_EQ(OomText(arena.get(), "decoder/Relu", names),
            "out of memory (limit): the limit stops it, and the device has more.\n"
            "  requested  4.00 MiB by decoder/Relu\n"
            "  in use     14.00 MiB; 14.00 MiB reserved of a limit of 16.00 MiB\n"
            "  free       0 B; largest possible block 0 B (0 B without stitching)\n"
            "  device     50.00 MiB free of 64.00 MiB\n"
            "  holders    8.00 MiB encoder/MatMul; 3 x 2.00 MiB\n"
            "  needs      2.00 MiB more\n"
            "  fits with  limit:18874368\n"
            "  also       `thimble run -- PROGRAM` tries the other settings on what it records, "
            "and says which fit");
  EXPECT_THAT(OomText(arena.get(), "", names), Not(HasSubstr(" by ")));
}

TEST(OomText, LongNamesOfAllHoldersFit) {
  const HostArena arena("memory:64MiB");
  KeyNames names;
  for (int i = 0; i < 8; ++i) {
    Hold(arena, 8 * kMiB, 1, names.Remember(std::to_string(i) + std::string(1000, 'x')));
  }
  const std::string op(5000, 'o');
  void* block = nullptr;
  ASSERT_EQ(thimble_allocate(arena.get(), kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY);
  const std::string text = OomText(arena.get(), op, names);
  EXPECT_THAT(text, HasSubstr("by " + op));
  for (int i = 0; i < 8; ++i) EXPECT_THAT(text, HasSubstr(std::to_string(i) + "xxx"));
}

}  // namespace
}  // namespace thimble::tf
