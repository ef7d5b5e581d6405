// Files that are replaced during a read.
#include "allocator/base/whole_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(WholeFile, AReaderSeesTheOldTextOrTheNewOne) {
  const std::string path = testing::TempDir() + "/replaced";
  const std::string old_text(100000, 'o');
  const std::string new_text(50000, 'n');
  ASSERT_TRUE(WriteWholeFile(old_text, path).ok());
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(WriteWholeFile(i % 2 == 0 ? new_text : old_text, path).ok());
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
  EXPECT_THAT(WriteWholeFile("text", inner).ToString(), HasSubstr(inner.string()));
  EXPECT_THAT(WriteWholeFile("text", folder / "none" / "file").ToString(),
              HasSubstr("could not be written"));
  const std::filesystem::directory_iterator left(folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 1) << "nothing but what was there";
}

TEST(WholeFile, ASpecialFileIsWrittenDirectly) {
  EXPECT_TRUE(WriteWholeFile("text", "/dev/null").ok());
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
  EXPECT_THAT(WriteWholeFile("text", "/dev/full").ToString(),
              AllOf(HasSubstr("'/dev/full'"), HasSubstr("No space left")));
}

TEST(WholeFile, ALinkStaysALinkAndAModeStays) {
  const std::filesystem::path folder = testing::TempDir() + "/links";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteWholeFile("old", folder / "file").ok());
  std::filesystem::permissions(folder / "file", std::filesystem::perms::owner_read);
  std::filesystem::create_symlink("file", folder / "link");
  ASSERT_TRUE(WriteWholeFile("new", folder / "link").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(ReadWholeFile(folder / "file").value(), "new");
  EXPECT_EQ(std::filesystem::status(folder / "file").permissions(),
            std::filesystem::perms::owner_read);
}

// The file may not grow beyond a bound, as on a disk that is full.
TEST(WholeFile, AFullDiskLeavesTheOldFile) {
  const std::filesystem::path folder = testing::TempDir() + "/full";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "file";
  ASSERT_TRUE(WriteWholeFile("old", path).ok());
  EXPECT_EXIT(
      {
        signal(SIGXFSZ, SIG_IGN);
        rlimit most;
        most.rlim_cur = most.rlim_max = 1000;
        if (setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(1);
        const absl::Status status = WriteWholeFile(std::string(2000, 'n'), path);
        std::fputs(status.ToString().c_str(), stderr);
        _exit(status.ok() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "full/file' could not be written: File too large");
  EXPECT_EQ(ReadWholeFile(path).value(), "old");
  const std::filesystem::directory_iterator left(folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 1) << "nothing but what was there";
}

}  // namespace
}  // namespace thimble
