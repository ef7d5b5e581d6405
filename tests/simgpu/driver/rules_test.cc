// R1 to R8: what CUDA forbids is refused with its error, changes nothing, and is on record.
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Rules : public Machine {
 protected:
  // Refused, and said so.
  void ExpectBroken(CUresult result, const std::string& words) {
    EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(IllegalCalls(), HasSubstr(words));
  }
};

TEST_F(Rules, LegalLifeOfAMappingLeavesNothingBehind) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  const CUmemGenericAllocationHandle handle = Create(kGranule);
  EXPECT_EQ(cuMemMap(base + kGranule, kGranule, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(Open(base + kGranule, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base + kGranule, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, 2 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), std::size_t{1} << 30);
  EXPECT_EQ(Counts().chunks, 0u);
  EXPECT_EQ(Counts().mappings, 0u);
  EXPECT_EQ(Counts().reservations, 0u);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Rules, R1_AChunkIsMappedWholeAndFromItsStart) {
  const CUdeviceptr base = Reserve(4 * kGranule);
  const CUmemGenericAllocationHandle handle = Create(2 * kGranule);
  ExpectBroken(cuMemMap(base, kGranule, kGranule, handle, 0), "offset 2097152 is not zero");
  ExpectBroken(cuMemMap(base, kGranule, 0, handle, 0), "rule R1");
  EXPECT_EQ(cuMemMap(base, 2 * kGranule, 0, handle, 0), CUDA_SUCCESS);
}

TEST_F(Rules, R2_MapNeedsReservedAddressesWithNothingThere) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  const CUmemGenericAllocationHandle handle = Create(kGranule);
  const CUmemGenericAllocationHandle large = Create(2 * kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ExpectBroken(cuMemMap(base, kGranule, 0, handle, 0), "something is mapped");
  ExpectBroken(cuMemMap(base + kGranule, 2 * kGranule, 0, large, 0), "not reserved");
  ExpectBroken(cuMemMap(base + 64 * kGranule, kGranule, 0, handle, 0), "not in use");
  ExpectBroken(cuMemMap(0, kGranule, 0, handle, 0), "no device memory");
}

TEST_F(Rules, R3_UnmapTakesExactlyOneMapping) {
  const CUdeviceptr base = Reserve(4 * kGranule);
  ASSERT_EQ(cuMemMap(base, 2 * kGranule, 0, Create(2 * kGranule), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + 2 * kGranule, 2 * kGranule, 0, Create(2 * kGranule), 0), CUDA_SUCCESS);
  ExpectBroken(cuMemUnmap(base, kGranule), "not that of the mapping");
  ExpectBroken(cuMemUnmap(base + kGranule, kGranule), "not where a mapping starts");
  ExpectBroken(cuMemUnmap(base, 4 * kGranule), "rule R3");
  EXPECT_EQ(cuMemUnmap(base, 2 * kGranule), CUDA_SUCCESS);
  ExpectBroken(cuMemUnmap(base, 2 * kGranule), "were unmapped by thread");
}

TEST_F(Rules, R4_NoAccessBeforeItIsGranted) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("which no device may use"));
  ExpectBroken(Open(base, 2 * kGranule), "not mapped");
  EXPECT_EQ(Open(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS) << "a new mapping starts closed";
}

TEST_F(Rules, R5_OnlyWholeGranules) {
  CUdeviceptr pointer = 0;
  ExpectBroken(cuMemAddressReserve(&pointer, kGranule + 1, 0, 0, 0), "2097153");
  ExpectBroken(cuMemAddressReserve(&pointer, 0, 0, 0, 0), "rule R5");
  ExpectBroken(cuMemAddressReserve(&pointer, kGranule, 3, 0, 0), "alignment 3");
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = Location(0);
  CUmemGenericAllocationHandle handle = 0;
  ExpectBroken(cuMemCreate(&handle, 4096, &prop, 0), "size 4096");
  const CUdeviceptr base = Reserve(2 * kGranule);
  ExpectBroken(cuMemMap(base + 4096, kGranule, 0, Create(kGranule), 0), "not a multiple");
}

TEST_F(Rules, R6_AddressesGoBackAsTheyCameAndEmpty) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  ExpectBroken(cuMemAddressFree(base, kGranule), "not what cuMemAddressReserve gave");
  ExpectBroken(cuMemAddressFree(base + kGranule, kGranule), "rule R6");
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  ExpectBroken(cuMemAddressFree(base, 2 * kGranule), "still mapped");
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, 2 * kGranule), CUDA_SUCCESS);
  ExpectBroken(cuMemAddressFree(base, 2 * kGranule), "freed by cuMemAddressFree");
}

TEST_F(Rules, R7_BytesLiveUntilTheLastUnmap) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  const CUmemGenericAllocationHandle handle = Create(kGranule);
  const std::size_t before = FreeBytes();
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kGranule, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(Open(base, 2 * kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(base, 77, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
  unsigned value = 0;
  ASSERT_EQ(cuMemcpyDtoH(&value, base + kGranule, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(value, 77u) << "both addresses are the same memory";
  ExpectBroken(cuMemMap(base, kGranule, 0, handle, 0), "not alive");
  ASSERT_EQ(cuMemUnmap(base + kGranule, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before + kGranule);
  ExpectBroken(cuMemRelease(handle), "not alive");
}

TEST_F(Rules, R7_AHandleCanBeHadBackFromItsMapping) {
  const CUdeviceptr base = Reserve(kGranule);
  const CUmemGenericAllocationHandle handle = Create(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base)), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(Counts().chunks, 0u);
  EXPECT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base)),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Rules, R8_DescriptorsAndImportsAreReferences) {
  const std::size_t before = FreeBytes();
  const CUmemGenericAllocationHandle handle = Create(kGranule, 0, /*shareable=*/true);
  int descriptor = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - kGranule);
  CUmemGenericAllocationHandle imported = 0;
  ASSERT_EQ(cuMemImportFromShareableHandle(
                &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  close(descriptor);
  EXPECT_EQ(FreeBytes(), before - kGranule) << "the importer's handle is a reference of its own";
  ASSERT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Rules, R8_OnlyChunksMadeForItAreExported) {
  int descriptor = -1;
  ExpectBroken(cuMemExportToShareableHandle(&descriptor, Create(kGranule),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "not created for descriptors");
}

TEST_F(Rules, MemoryOfAnotherKindOrDeviceIsRefused) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = Location(2);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
  prop.location.id = 0;
  prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simgpu
