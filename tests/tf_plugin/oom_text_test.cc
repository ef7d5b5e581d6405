// Names for keys, and the words of the report.
#include "tf_plugin/oom_text.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tf_plugin/key_names.h"

namespace thimble::tf {
namespace {

using ::testing::AllOf;
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

class OomReport : public testing::Test {
 protected:
  OomReport() {
    oom_.struct_size = sizeof(oom_);
    oom_.requested = 96 << 20;
    oom_.missing = 32 << 20;
    oom_.in_use = 960 << 20;
    oom_.free = 64 << 20;
    oom_.limit = std::uint64_t{1} << 30;
    oom_.reserved = oom_.limit;
    oom_.largest_free = 16 << 20;
    oom_.largest_stitchable = 64 << 20;
    oom_.device_free = std::uint64_t{3} << 30;
    oom_.holders = 2;
    oom_.holder_key[0] = names_.Remember("encoder/MatMul");
    oom_.holder_bytes[0] = 512 << 20;
    oom_.holder_key[1] = 0;
    oom_.holder_bytes[1] = 1000;
    oom_.holder_blocks[1] = 3;
  }

  std::string Text(thimble_oom_kind kind) {
    oom_.kind = kind;
    return OomText("GPU_0_thimble", "decoder/Relu", oom_, names_);
  }

  KeyNames names_;
  thimble_oom oom_ = {};
};

TEST_F(OomReport, SaysEverythingOnce) {
  EXPECT_EQ(Text(THIMBLE_OOM_LIMIT),
            "GPU_0_thimble ran out of memory: the limit of this process is reached.\n"
            "  requested  96.0 MiB by decoder/Relu\n"
            "  in use     960.0 MiB of 1.00 GiB\n"
            "  free       64.0 MiB, largest possible block 64.0 MiB (16.0 MiB without stitching)\n"
            "  holders    512.0 MiB encoder/MatMul; 1000 B without an op name (3 blocks)\n"
            "  would fit with a limit higher by 32.0 MiB; the device has 3.00 GiB free (limit in "
            "THIMBLE_CONF, memory_limit, per_process_gpu_memory_fraction).");
}

TEST_F(OomReport, TheRemedyFitsTheKind) {
  EXPECT_THAT(Text(THIMBLE_OOM_TRUE), AllOf(HasSubstr("device is full"), HasSubstr("32.0 MiB less"),
                                            Not(HasSubstr("limit in THIMBLE_CONF"))));
  EXPECT_THAT(Text(THIMBLE_OOM_DRIVER), HasSubstr("another process holds memory"));
  EXPECT_THAT(Text(THIMBLE_OOM_FRAGMENTATION),
              AllOf(HasSubstr("32.0 MiB less"), HasSubstr("stitch:on")));
}

TEST_F(OomReport, NobodyHoldsAnythingAndNobodyIsNamed) {
  oom_.holders = 0;
  const std::string text = OomText("a", "", oom_, names_);
  EXPECT_THAT(text, HasSubstr("holders    none"));
  EXPECT_THAT(text, Not(HasSubstr(" by ")));
}

}  // namespace
}  // namespace thimble::tf
