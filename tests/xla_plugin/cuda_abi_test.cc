// cuda_abi.h agrees with cuda.h. This is checked when the test compiles; nothing can fail at run
// time.
#include "xla_plugin/driver_front/cuda_abi.h"

#include <cuda.h>

#include <type_traits>

#include "gtest/gtest.h"

namespace {

namespace ours = thimble::xla;

static_assert(sizeof(ours::CUresult) == sizeof(CUresult));
static_assert(std::is_same_v<ours::CUdevice, CUdevice>);
static_assert(std::is_same_v<ours::CUdeviceptr, CUdeviceptr>);
static_assert(sizeof(ours::CUcontext) == sizeof(CUcontext));
static_assert(sizeof(ours::CUstream) == sizeof(CUstream));
static_assert(sizeof(ours::CUgreenCtx) == sizeof(CUgreenCtx));
static_assert(sizeof(ours::CUmemoryPool) == sizeof(CUmemoryPool));
static_assert(sizeof(ours::CUmemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(offsetof(ours::CUmemAccessDesc, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(offsetof(ours::CUmemLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(ours::CUipcMemHandle) == sizeof(CUipcMemHandle));

static_assert(ours::kSuccess == CUDA_SUCCESS);
static_assert(ours::kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(ours::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(ours::kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(ours::kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(ours::kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(ours::kUnknown == CUDA_ERROR_UNKNOWN);

static_assert(ours::kVirtualMemorySupported ==
              CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(ours::kMemoryPoolsSupported == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(ours::kReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(ours::kReservedCurrent == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
static_assert(ours::kReservedHigh == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
static_assert(ours::kUsedCurrent == CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
static_assert(ours::kUsedHigh == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
static_assert(ours::kIpcCapable == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
static_assert(ours::kRangeStart == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(ours::kRangeSize == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(ours::kPoolHandle == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
static_assert(ours::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(ours::kNotCapturing == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(ours::kPerThreadDefaultStream == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
static_assert(ours::kLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(ours::kAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

TEST(CudaAbi, StreamsThatAreNotPointersHaveTheirNumbers) {
  EXPECT_EQ(ours::kLegacyStream, reinterpret_cast<std::uintptr_t>(CU_STREAM_LEGACY));
  EXPECT_EQ(ours::kPerThreadStream, reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD));
}

}  // namespace
