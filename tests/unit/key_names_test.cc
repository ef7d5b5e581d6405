// Names for keys: found again, bounded, and the same for every thread.
#include "allocator/observe/key_names.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(KeyNames, ANameIsFoundByItsKey) {
  KeyNames names;
  EXPECT_EQ(names.Remember("").key, 0u);
  const std::uint64_t key = names.Remember("a/MatMul").key;
  EXPECT_NE(key, 0u);
  EXPECT_EQ(names.Remember("a/MatMul").key, key);
  EXPECT_NE(names.Remember("b/MatMul").key, key);
  EXPECT_STREQ(names.NameOf(key), "a/MatMul");
  EXPECT_STREQ(names.NameOf(0), "");
  EXPECT_STREQ(names.NameOf(key + 2), "");
}

TEST(KeyNames, ATableThatIsFullForgetsNamesAndKeepsKeys) {
  KeyNames names;
  std::size_t named = 0;
  for (std::size_t i = 0; i < 2 * KeyNames::kPlaces; ++i) {
    const std::string name = "op" + std::to_string(i);
    const std::uint64_t key = names.Remember(name).key;
    EXPECT_EQ(names.Remember(name).key, key);
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
  EXPECT_EQ(names.NameOf(names.Remember(name).key), name.substr(0, KeyNames::kLongestName));
}

TEST(KeyNames, ThreadsAgree) {
  KeyNames names;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 1000; ++i) {
        const std::string name = "op" + std::to_string(i);
        const std::string found = names.NameOf(names.Remember(name).key);
        // Another thread may be about to write it.
        EXPECT_TRUE(found == name || found.empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "op" + std::to_string(i);
    EXPECT_EQ(names.NameOf(names.Remember(name).key), name);
  }
}

TEST(KeyNames, OnlyTheFirstTimeIsNewAndAllAreShown) {
  KeyNames names;
  EXPECT_TRUE(names.Remember("a").is_new);
  EXPECT_FALSE(names.Remember("a").is_new);
  EXPECT_FALSE(names.Remember("").is_new);
  EXPECT_TRUE(names.Remember("b").is_new);
  std::map<std::uint64_t, std::string> all;
  names.ForEach([&](std::uint64_t key, const std::string& name) { all[key] = name; });
  const std::map<std::uint64_t, std::string> expected = {{KeyNames::KeyOf("a"), "a"},
                                                         {KeyNames::KeyOf("b"), "b"}};
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace thimble
