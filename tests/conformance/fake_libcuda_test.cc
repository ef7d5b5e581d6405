// The fake itself is as strict as cuda.h where the twelve calls cannot reach: what passes against
// it must not be what only a lax fake lets through.
#include "tests/conformance/fake_libcuda.h"

#include <unistd.h>

#include "allocator/base/bytes.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

constexpr Bytes kGranule = 2 * kMiB;

class FakeLibcuda : public testing::Test {
 protected:
  template <typename Function, typename... Arguments>
  auto Call(const char* symbol, Arguments... arguments) {
    return fake_.Symbol<Function>(symbol)(arguments...);
  }
  void SetUp() override {
    ASSERT_EQ(Call<decltype(cuInit)>("cuInit", 0u), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(Call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(Call<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2", context), CUDA_SUCCESS);
    chunk_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    chunk_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    chunk_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  void TearDown() override {
    CUcontext context = nullptr;
    Call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2", &context);
  }

  CUdeviceptr Reserve(Bytes bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(Call<decltype(cuMemAddressReserve)>("cuMemAddressReserve", &address, bytes, kGranule,
                                                  CUdeviceptr{0}, 0ull),
              CUDA_SUCCESS);
    return address;
  }
  CUresult Create(CUmemGenericAllocationHandle* handle) {
    return Call<decltype(cuMemCreate)>("cuMemCreate", handle, kGranule, &chunk_, 0ull);
  }
  CUresult Map(CUdeviceptr address, Bytes offset, CUmemGenericAllocationHandle handle) {
    return Call<decltype(cuMemMap)>("cuMemMap", address, kGranule, offset, handle, 0ull);
  }
  Bytes UsedBytes() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    Call<decltype(cuMemGetInfo_v2)>("cuMemGetInfo_v2", &free_bytes, &total_bytes);
    return total_bytes - free_bytes;
  }

  FakeCuda fake_;
  CUmemAllocationProp chunk_ = {};
};

TEST_F(FakeLibcuda, R1_OffsetsAreRefused) {
  const CUdeviceptr base = Reserve(kGranule);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(Create(&handle), CUDA_SUCCESS);
  EXPECT_EQ(Map(base, kGranule, handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Map(base, 1, handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Map(base, 0, handle), CUDA_SUCCESS);
}

TEST_F(FakeLibcuda, R8_ADescriptorKeepsTheMemoryAliveUntilItIsClosed) {
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(Create(&handle), CUDA_SUCCESS);
  int descriptor = -1;
  ASSERT_EQ(Call<decltype(cuMemExportToShareableHandle)>(
                "cuMemExportToShareableHandle", static_cast<void*>(&descriptor), handle,
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull),
            CUDA_SUCCESS);
  ASSERT_EQ(Call<decltype(cuMemRelease)>("cuMemRelease", handle), CUDA_SUCCESS);
  EXPECT_EQ(UsedBytes(), kGranule);
  CUmemGenericAllocationHandle imported = 0;
  ASSERT_EQ(Call<decltype(cuMemImportFromShareableHandle)>(
                "cuMemImportFromShareableHandle", &imported,
                reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  close(descriptor);
  EXPECT_EQ(UsedBytes(), kGranule) << "the importer's handle is a reference of its own";
  ASSERT_EQ(Call<decltype(cuMemRelease)>("cuMemRelease", imported), CUDA_SUCCESS);
  EXPECT_EQ(UsedBytes(), 0u);
}

TEST_F(FakeLibcuda, MemoryOfAnotherKindOrDeviceIsRefused) {
  CUmemGenericAllocationHandle handle = 0;
  chunk_.location.id = 1;
  EXPECT_EQ(Create(&handle), CUDA_ERROR_INVALID_VALUE);
  chunk_.location.id = 0;
  chunk_.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  EXPECT_EQ(Create(&handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(FakeLibcuda, NothingWorksWithoutAContext) {
  CUcontext context = nullptr;
  ASSERT_EQ(Call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2", &context), CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(Create(&handle), CUDA_ERROR_INVALID_CONTEXT);
  CUevent event = nullptr;
  EXPECT_EQ(Call<decltype(cuEventCreate)>("cuEventCreate", &event, 0u), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(Call<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2", context), CUDA_SUCCESS);
}

TEST_F(FakeLibcuda, NothingWorksBeforeInit) {
  CUcontext context = nullptr;
  Call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2", &context);
  Call<decltype(fake_cuda_reset)>("fake_cuda_reset");
  int count = 0;
  EXPECT_EQ(Call<decltype(cuDeviceGetCount)>("cuDeviceGetCount", &count),
            CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace
}  // namespace thimble
