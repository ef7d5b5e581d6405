// The words of the report when memory runs out.
#include "tf_plugin/oom_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"

namespace thimble::tf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
    oom_.holder_key[0] = thimble_remember(arena_.get(), "encoder/MatMul", 14);
    oom_.holder_bytes[0] = 512 << 20;
    oom_.holder_key[1] = 0;
    oom_.holder_bytes[1] = 1000;
    oom_.holder_blocks[1] = 3;
  }

  std::string Text(thimble_oom_kind kind) {
    oom_.kind = kind;
    return OomText("GPU_0_thimble", "decoder/Relu", oom_, arena_.get());
  }

  HostArena arena_;
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
  const std::string text = OomText("a", "", oom_, arena_.get());
  EXPECT_THAT(text, HasSubstr("holders    none"));
  EXPECT_THAT(text, Not(HasSubstr(" by ")));
}

}  // namespace
}  // namespace thimble::tf
