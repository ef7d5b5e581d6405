// P7: libthimble.so loads late, unloads, and loads again.
#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/abi/api.h"

namespace {

constexpr char kFiller[] = "tests/abi/tls_filler.so";

// One arena from beginning to end.
void UseArena(const Api& api) {
  thimble_arena* arena = nullptr;
  ASSERT_EQ(api.create("device:cpu,memory:16MiB,chunk:64KiB", &arena), THIMBLE_OK)
      << api.last_error();
  const auto use = [&] {
    for (const size_t bytes : {100, 5000, 1000000}) {
      void* block = nullptr;
      ASSERT_EQ(api.allocate(arena, bytes, 0, 0, 0, &block), THIMBLE_OK) << api.last_error();
      std::memset(block, 1, bytes);
      ASSERT_EQ(api.free(arena, block, 0), THIMBLE_OK) << api.last_error();
    }
    EXPECT_EQ(api.free(arena, arena, 0), THIMBLE_INVALID_ARGUMENT);
    EXPECT_STRNE(api.last_error(), "");
  };
  use();
  std::thread(use).join();
  api.destroy(arena);
}

TEST(Loading, WorksWhenSixtyOthersHaveUsedUpStaticThreadLocalStorage) {
  int loaded = 0;
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    // A copy each: the loader knows a library by its file.
    const std::string copy = testing::TempDir() + "/filler" + std::to_string(i) + ".so";
    std::filesystem::copy_file(kFiller, copy, std::filesystem::copy_options::overwrite_existing);
    if (dlopen(copy.c_str(), RTLD_NOW) != nullptr) {
      ++loaded;
    } else {
      EXPECT_NE(std::string(dlerror()).find("static TLS"), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(loaded, 10);
  EXPECT_GT(refused, 0) << "there is still room: this test shows nothing";
  Api api = Api::Open();
  UseArena(api);
  api.Close();
}

TEST(Loading, WorksAgainAfterItWasClosed) {
  for (int round = 0; round < 10; ++round) {
    Api api = Api::Open();
    UseArena(api);
    api.Close();
  }
}

TEST(Loading, TwoThreadsMayLoadAndCloseAtOnce) {
  const auto rounds = [] {
    for (int round = 0; round < 20; ++round) {
      Api api = Api::Open();
      UseArena(api);
      api.Close();
    }
  };
  std::thread other(rounds);
  rounds();
  other.join();
}

}  // namespace
