// Files that are replaced while somebody reads them.
#include "allocator/base/whole_file.h"

#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(WholeFile, AReaderSeesTheOldTextOrTheNewOne) {
  const std::string path = testing::TempDir() + "/replaced";
  const std::string old_text(100000, 'o');
  const std::string new_text(50000, 'n');
  ASSERT_TRUE(ReplaceWholeFile(old_text, path).ok());
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(ReplaceWholeFile(i % 2 == 0 ? new_text : old_text, path).ok());
    }
    is_over = true;
  });
  while (!is_over) EXPECT_THAT(ReadWholeFile(path).value(), AnyOf(old_text, new_text));
  writer.join();
}

TEST(WholeFile, AnErrorLeavesTheOldFileAndNoOther) {
  const std::filesystem::path folder = testing::TempDir() + "/folder";
  const std::filesystem::path inner = folder / "inner";  // cannot be replaced by a file
  std::filesystem::create_directories(inner);
  EXPECT_THAT(ReplaceWholeFile("text", inner).ToString(), HasSubstr(inner.string()));
  EXPECT_THAT(ReplaceWholeFile("text", folder / "none" / "file").ToString(),
              HasSubstr("could not be written"));
  const std::filesystem::directory_iterator left(folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 1) << "nothing but what was there";
}

}  // namespace
}  // namespace thimble
