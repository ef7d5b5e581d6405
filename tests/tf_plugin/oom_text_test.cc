// The report has names in place of keys.
#include "tf_plugin/oom_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"

namespace thimble::tf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Holds `bytes` for `key`, in several blocks, until the arena is destroyed.
void Hold(const HostArena& arena, std::size_t bytes, int blocks, std::uint64_t key) {
  for (int i = 0; i < blocks; ++i) {
    void* block = nullptr;
    ASSERT_EQ(thimble_allocate(arena.get(), bytes, 0, 0, key, &block), THIMBLE_OK);
  }
}

TEST(OomText, IsTheReportOfTheCoreWithNames) {
  const HostArena arena("memory:64MiB,limit:16MiB");
  Hold(arena, 8 * kMiB, 1, thimble_remember(arena.get(), "encoder/MatMul", 14));
  Hold(arena, 2 * kMiB, 3, 0);
  void* block = nullptr;
  ASSERT_EQ(thimble_allocate(arena.get(), 4 * kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY);
  EXPECT_EQ(OomText(arena.get(), "decoder/Relu"),
            "out of memory (limit): the limit is reached, but the device has more memory.\n"
            "  requested  4.00 MiB by decoder/Relu\n"
            "  in use     14.00 MiB; 14.00 MiB reserved of a limit of 16.00 MiB\n"
            "  free       0 B; largest possible block 0 B (0 B without stitching)\n"
            "  device     50.00 MiB free of 64.00 MiB\n"
            "  holders    8.00 MiB encoder/MatMul; 3 x 2.00 MiB\n"
            "  needs      2.00 MiB more\n"
            "  fits with  limit:18874368\n"
            "  also       `thimble run -- PROGRAM` records the program, tries the other settings, "
            "and says which fit");
  EXPECT_THAT(OomText(arena.get(), ""), Not(HasSubstr(" by ")));
}

TEST(OomText, LongNamesOfAllHoldersFit) {
  const HostArena arena("memory:64MiB");
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i) + std::string(1000, 'x');
    Hold(arena, 8 * kMiB, 1, thimble_remember(arena.get(), name.data(), name.size()));
  }
  const std::string op(5000, 'o');
  void* block = nullptr;
  ASSERT_EQ(thimble_allocate(arena.get(), kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY);
  const std::string text = OomText(arena.get(), op);
  EXPECT_THAT(text, HasSubstr("by " + op));
  for (int i = 0; i < 8; ++i) EXPECT_THAT(text, HasSubstr(std::to_string(i) + "xxx"));
}

}  // namespace
}  // namespace thimble::tf
