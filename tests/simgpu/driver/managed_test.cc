// Managed memory: whose it is, and how its pages move.
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"
#include "tests/simgpu/driver/paging.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Managed : public Machine {
 protected:
  void SetUp() override { Start("memory:16MiB"); }  // eight pages

  static CUdeviceptr AllocateManaged(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    return pointer;
  }
  static simgpu_pages Pages(int device = 0) {
    simgpu_pages pages;
    EXPECT_TRUE(simgpu_get_pages(device, &pages));
    return pages;
  }
  static void Fill(CUdeviceptr pointer, std::size_t bytes) {
    EXPECT_EQ(cuMemsetD8(pointer, 0, bytes), CUDA_SUCCESS);
  }
};

TEST_F(Managed, IsTheHostsToo) {
  const CUdeviceptr pointer = AllocateManaged(4096);
  *reinterpret_cast<int*>(pointer) = 5;
  int value = 0;
  ASSERT_EQ(cuMemcpyDtoH(&value, pointer, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(value, 5);
  value = 6;
  ASSERT_EQ(cuMemcpyHtoD(pointer, &value, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<int*>(pointer), 6);
  bool is_managed = false;
  EXPECT_EQ(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer),
            CUDA_SUCCESS);
  EXPECT_TRUE(is_managed);
  EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("4096 bytes of cuMemAllocManaged, freed by cuMemFree"));
}

TEST_F(Managed, MayBeLargerThanTheDevice) {
  const CUdeviceptr pointer = AllocateManaged(64 * kPageBytes);
  EXPECT_EQ(FreeBytes(), 8 * kPageBytes);
  Fill(pointer, 64 * kPageBytes);
  EXPECT_EQ(Pages().faults, 64u);
  EXPECT_EQ(Pages().resident, 8 * kPageBytes);
  EXPECT_EQ(Pages().in, 0u) << "nobody had written it before";
  EXPECT_EQ(Pages().out, 56 * kPageBytes);
  simgpu_host host;
  simgpu_get_host(&host);
  EXPECT_EQ(host.managed, 64 * kPageBytes);
  EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(Pages().resident, 0u);
  simgpu_get_host(&host);
  EXPECT_EQ(host.managed, 0u);
}

TEST_F(Managed, PagesThatFitMoveOnce) {
  const CUdeviceptr pointer = AllocateManaged(8 * kPageBytes);
  for (int i = 0; i < 10; ++i) Fill(pointer, 8 * kPageBytes);
  EXPECT_EQ(Pages().faults, 8u);
  EXPECT_EQ(Pages().out, 0u);
}

TEST_F(Managed, ACircleThatDoesNotFitMovesEveryPageEveryTime) {
  const CUdeviceptr pointer = AllocateManaged(9 * kPageBytes);
  for (int i = 0; i < 10; ++i) Fill(pointer, 9 * kPageBytes);
  EXPECT_EQ(Pages().faults, 90u);
  EXPECT_EQ(Pages().in, 81 * kPageBytes);
  EXPECT_EQ(Pages().out, 82 * kPageBytes);
}

TEST_F(Managed, TheOldestPageLeavesFirst) {
  const CUdeviceptr pointer = AllocateManaged(9 * kPageBytes);
  Fill(pointer, 8 * kPageBytes);
  Fill(pointer, 1);                   // now page 1 is the oldest
  Fill(pointer + 8 * kPageBytes, 1);  // in its place
  EXPECT_EQ(Pages().faults, 9u);
  Fill(pointer, 1);
  EXPECT_EQ(Pages().faults, 9u);
  Fill(pointer + kPageBytes, 1);
  EXPECT_EQ(Pages().faults, 10u);
  EXPECT_EQ(Pages().in, kPageBytes);
}

TEST_F(Managed, OtherMemoryTakesItsRoom) {
  const CUdeviceptr pointer = AllocateManaged(8 * kPageBytes);
  Fill(pointer, 8 * kPageBytes);
  const CUdeviceptr plain = Allocate(6 * kPageBytes);
  EXPECT_EQ(Pages().resident, 2 * kPageBytes);
  EXPECT_EQ(Pages().out, 6 * kPageBytes);
  Fill(pointer, 8 * kPageBytes);
  EXPECT_EQ(Pages().resident, 2 * kPageBytes);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  Allocate(16 << 20);
  const std::size_t before = Pages().faults;
  Fill(pointer, 1);
  EXPECT_EQ(Pages().faults, before + 1) << "without any room a page comes and goes";
  EXPECT_EQ(Pages().resident, 0u);
}

TEST_F(Managed, CopiesTouchWhatTheyCover) {
  const CUdeviceptr pointer = AllocateManaged(4 * kPageBytes);
  std::vector<char> data(kPageBytes);
  ASSERT_EQ(cuMemcpyDtoH(data.data(), pointer + kPageBytes + 1, kPageBytes), CUDA_SUCCESS);
  EXPECT_EQ(Pages().faults, 2u) << "one byte of the third page";
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_MANAGED, SIMGPU_PAGEABLE), kPageBytes);
}

TEST_F(Managed, KernelsTouchBlocksAsFarAsTheyAreKnown) {
  const CUdeviceptr pointer = AllocateManaged(8 * kPageBytes);
  const auto launch = [](CUdeviceptr block, double bytes) {
    const void* const pointers[] = {reinterpret_cast<void*>(block)};
    simgpu_work work = {};
    work.name = "a library";
    work.bytes = bytes;
    work.pointers = pointers;
    work.pointer_count = 1;
    EXPECT_EQ(simgpu_submit(&work), CUDA_SUCCESS);
  };
  launch(pointer, 100);
  EXPECT_EQ(Pages().faults, 1u) << "nobody knows where the block ends";
  launch(pointer + 4 * kPageBytes, 100);
  EXPECT_EQ(Pages().faults, 2u);
  launch(pointer, 100);
  EXPECT_EQ(Pages().faults, 5u) << "another block starts behind four pages";
  launch(pointer, 6 * kPageBytes);
  EXPECT_EQ(Pages().faults, 6u) << "no longer";
  launch(pointer, 100);
  EXPECT_EQ(Pages().faults, 6u);
}

TEST_F(Managed, PagesMoveBetweenDevices) {
  Start("gpus:2,memory:16MiB");
  const CUdeviceptr pointer = AllocateManaged(2 * kPageBytes);
  Fill(pointer, 2 * kPageBytes);
  EXPECT_EQ(cuMemPrefetchAsync(pointer, kPageBytes, Location(1), 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Pages(0).resident, kPageBytes);
  EXPECT_EQ(Pages(1).resident, kPageBytes);
}

TEST_F(Managed, PrefetchedPagesDoNotFault) {
  const CUdeviceptr pointer = AllocateManaged(4 * kPageBytes);
  Fill(pointer, 4 * kPageBytes);
  CUmemLocation host = {};
  host.type = CU_MEM_LOCATION_TYPE_HOST;
  ASSERT_EQ(cuMemPrefetchAsync(pointer, 4 * kPageBytes, host, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Pages().resident, 0u);
  EXPECT_EQ(Pages().out, 4 * kPageBytes);
  ASSERT_EQ(cuMemPrefetchAsync(pointer, 4 * kPageBytes, Location(0), 0, nullptr), CUDA_SUCCESS);
  Fill(pointer, 4 * kPageBytes);
  EXPECT_EQ(Pages().faults, 4u) << "those of the first time";
  EXPECT_EQ(Pages().in, 4 * kPageBytes);
  EXPECT_EQ(Pages().prefetched, 4 * kPageBytes);
  EXPECT_EQ(cuMemPrefetchAsync(pointer, kPageBytes, Location(7), 0, nullptr),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  EXPECT_EQ(cuMemPrefetchAsync(Allocate(512), 512, Location(0), 0, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("is not managed memory: it is byte 0 of 512 bytes"));
}

TEST(PagingPrice, IsFaultsAndBothDirectionsOfTheBus) {
  Paging paging(1);
  constexpr Address kBegin = 64 * kPageBytes;
  const auto seconds = [&](Bytes bytes) {
    return SecondsOf(paging.Touch(0, kBegin, bytes, 4 * kPageBytes), 10e9, 20e9);
  };
  const double page = static_cast<double>(kPageBytes);
  const double fault = seconds(kPageBytes);
  EXPECT_GE(fault, 20e-6);
  EXPECT_LE(fault, 50e-6);
  EXPECT_EQ(seconds(kPageBytes), 0) << "it is there";
  EXPECT_NEAR(seconds(5 * kPageBytes), 4 * fault + page / 20e9, 1e-9);
  EXPECT_NEAR(seconds(5 * kPageBytes), 5 * (fault + page / 10e9 + page / 20e9), 1e-9);
}

}  // namespace
}  // namespace simgpu
