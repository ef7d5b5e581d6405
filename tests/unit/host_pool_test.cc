// HostPool: what it hands out is ours alone, and no more than its limit.
#include "allocator/swap/host_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(HostPool, HandsOutUpToItsLimit) {
  const auto pool = HostPool::Create(64 * kKiB).value();
  void* const first = pool->Take(48 * kKiB);
  ASSERT_NE(first, nullptr);
  std::memset(first, 1, 48 * kKiB);
  EXPECT_EQ(pool->Take(32 * kKiB), nullptr);
  void* const second = pool->Take(16 * kKiB);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(pool->taken_bytes(), 64 * kKiB);
  pool->Give(first, 48 * kKiB);
  EXPECT_NE(pool->Take(32 * kKiB), nullptr);
}

TEST(HostPool, MoreThanThereIsIsRefused) { EXPECT_FALSE(HostPool::Create(Bytes{1} << 62).ok()); }

TEST(HostPool, AChildHasNone) {
  const auto pool = HostPool::Create(64 * kKiB).value();
  ASSERT_NE(pool->Take(4 * kKiB), nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(pool->IsOurs() || pool->Take(4 * kKiB) != nullptr ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NE(pool->Take(4 * kKiB), nullptr);
}

}  // namespace
}  // namespace thimble
