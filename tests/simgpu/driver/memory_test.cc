// Plain memory, pools, peers, and what the device says is left.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class MemoryCalls : public Machine {
 protected:
  template <typename T = cuuint64_t>
  static T PoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute) {
    T value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
    return value;
  }
  static CUmemoryPool DefaultPool() {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    return pool;
  }
};

TEST_F(MemoryCalls, EveryDeviceHasItsOwnMemory) {
  Start("gpus:2,memory:64MiB;32MiB,reserve:1MiB");
  Allocate(10 * kMiB);
  EXPECT_EQ(FreeBytes(), 53 * kMiB);
  CUcontext other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), 31 * kMiB);
  Create(4 * kMiB, /*device=*/0);
  EXPECT_EQ(FreeBytes(), 31 * kMiB) << "a chunk costs the device it is of, not the current one";
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), 49 * kMiB);
}

TEST_F(MemoryCalls, OutOfMemoryComesAtTheSetSizeAndGoesAway) {
  Start("memory:64MiB");
  const CUdeviceptr half = Allocate(32 * kMiB);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, 32 * kMiB + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&pointer, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&pointer, 32 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), 0u);
  EXPECT_EQ(cuMemFree(half), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), 32 * kMiB);
  EXPECT_THAT(IllegalCalls(), IsEmpty()) << "to run out of memory is no mistake";
}

TEST_F(MemoryCalls, BadFreesAreIllegalAndSayWhy) {
  const CUdeviceptr pointer = Allocate(4096);
  EXPECT_EQ(cuMemFree(pointer + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("byte 512 of 4096 bytes of cuMemAlloc"));
  EXPECT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("4096 bytes of cuMemAlloc, freed by cuMemFree"));
  int local = 0;
  EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(&local)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("no device memory"));
  EXPECT_EQ(cuMemFree(Reserve(kGranule)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("reserved but not mapped"));
  EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
}

TEST_F(MemoryCalls, FreedAddressesAreNotUsedAgainSoon) {
  const CUdeviceptr first = Allocate(4096);
  ASSERT_EQ(cuMemFree(first), CUDA_SUCCESS);
  for (int i = 0; i < 1000; ++i) {
    const CUdeviceptr next = Allocate(4096);
    ASSERT_NE(next, first);
    ASSERT_EQ(cuMemFree(next), CUDA_SUCCESS);
  }
}

TEST_F(MemoryCalls, CopiesMoveBytesInEveryDirection) {
  std::vector<char> out(100000);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 7);
  const CUdeviceptr first = Allocate(out.size());
  const CUdeviceptr second = Allocate(out.size());
  ASSERT_EQ(cuMemcpyHtoD(first, out.data(), out.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(second, first, out.size()), CUDA_SUCCESS);
  std::vector<char> in(out.size());
  ASSERT_EQ(cuMemcpyDtoH(in.data(), second, in.size()), CUDA_SUCCESS);
  EXPECT_EQ(in, out);
  ASSERT_EQ(cuMemsetD16(first, 0x0102, 3), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(in.data(), first, 8), CUDA_SUCCESS);
  EXPECT_EQ(std::string(in.data(), 6), std::string("\2\1\2\1\2\1"));
  EXPECT_EQ(in[6], out[6]);
}

TEST_F(MemoryCalls, RowsAreCopiedAndFilledWithTheirPitch) {
  const CUdeviceptr box = Allocate(64);
  ASSERT_EQ(cuMemsetD8(box, 0, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD2D8(box, 16, 9, 2, 3), CUDA_SUCCESS);
  std::array<char, 6> rows = {};
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = box;
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = rows.data();
  copy.dstPitch = 2;
  copy.WidthInBytes = 2;
  copy.Height = 3;
  ASSERT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
  EXPECT_THAT(rows, testing::Each(9));
  unsigned char outside = 1;
  ASSERT_EQ(cuMemcpyDtoH(&outside, box + 2, 1), CUDA_SUCCESS);
  EXPECT_EQ(outside, 0);
}

TEST_F(MemoryCalls, StitchedChunksAreOneRangeForCopies) {
  const CUdeviceptr home = Reserve(2 * kGranule);
  const CUdeviceptr alias = Reserve(2 * kGranule);
  const CUmemGenericAllocationHandle handles[] = {Create(kGranule), Create(kGranule)};
  for (int i : {0, 1}) {
    ASSERT_EQ(cuMemMap(home + i * kGranule, kGranule, 0, handles[i], 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(alias + (1 - i) * kGranule, kGranule, 0, handles[i], 0), CUDA_SUCCESS);
  }
  ASSERT_EQ(Open(home, 2 * kGranule), CUDA_SUCCESS);
  ASSERT_EQ(Open(alias, 2 * kGranule), CUDA_SUCCESS);
  const std::string text = "across the seam";
  ASSERT_EQ(cuMemcpyHtoD(alias + kGranule - 6, text.data(), text.size()), CUDA_SUCCESS);
  std::string back(6, ' ');
  ASSERT_EQ(cuMemcpyDtoH(back.data(), home + 2 * kGranule - 6, 6), CUDA_SUCCESS);
  EXPECT_EQ(back, "across");
  ASSERT_EQ(cuMemcpyDtoH(back.data(), home, 6), CUDA_SUCCESS);
  EXPECT_EQ(back, " the s");
}

TEST_F(MemoryCalls, APoolKeepsWhatIsFreedUpToItsThreshold) {
  const CUmemoryPool pool = DefaultPool();
  const std::size_t before = FreeBytes();
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocAsync(&pointer, 100 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100 * kMiB);
  EXPECT_EQ(FreeBytes(), before - 128 * kMiB) << "whole segments";
  cuuint64_t threshold = 64 * kMiB;
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - 128 * kMiB) << "cached until somebody waits";
  EXPECT_EQ(PoolAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - 64 * kMiB);
  EXPECT_EQ(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * kMiB);
  EXPECT_EQ(PoolAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 128 * kMiB);
  ASSERT_EQ(cuMemAllocAsync(&pointer, 64 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - 64 * kMiB) << "from the cache";
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS) << "a pool's block may be freed without a stream";
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(MemoryCalls, APoolFragments) {
  Start("memory:64MiB");
  CUdeviceptr blocks[8] = {};
  for (CUdeviceptr& block : blocks) {
    ASSERT_EQ(cuMemAllocAsync(&block, 8 * kMiB, nullptr), CUDA_SUCCESS);
  }
  for (int i = 0; i < 8; i += 2) ASSERT_EQ(cuMemFreeAsync(blocks[i], nullptr), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocAsync(&pointer, 16 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY)
      << "half is free, but never two blocks beside each other";
  ASSERT_EQ(cuMemFreeAsync(blocks[3], nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&pointer, 16 * kMiB, nullptr), CUDA_SUCCESS) << "now there are";
  ASSERT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(blocks[1], nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(blocks[7], nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&pointer, 40 * kMiB, nullptr), CUDA_SUCCESS)
      << "a segment that is free as a whole moves to where it is needed";
}

TEST_F(MemoryCalls, WhatAPoolCachesIsThereForOthersInNeed) {
  Start("memory:64MiB");
  cuuint64_t everything = ~cuuint64_t{0};
  ASSERT_EQ(cuMemPoolSetAttribute(DefaultPool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything),
            CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocAsync(&pointer, 60 * kMiB, nullptr), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocAsync(&more, 60 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&more, 60 * kMiB), CUDA_SUCCESS);
}

TEST_F(MemoryCalls, PoolsComeAndGo) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = Location(0);
  properties.maxSize = 8 * kMiB;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 9 * kMiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&pointer, 8 * kMiB, pool, nullptr), CUDA_SUCCESS);
  const std::size_t before = FreeBytes();
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(pointer, 1, 8 * kMiB), CUDA_SUCCESS) << "blocks outlive their pool";
  ASSERT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before + 8 * kMiB);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  EXPECT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("freed by cuMemFreeAsync"));
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolDestroy(DefaultPool()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryCalls, PointersSayWhatTheyAre) {
  const CUdeviceptr pointer = Allocate(4096);
  unsigned type = 0;
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + 5),
            CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cuMemGetAddressRange(&begin, &bytes, pointer + 5), CUDA_SUCCESS);
  EXPECT_EQ(begin, pointer);
  EXPECT_EQ(bytes, 4096u);
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 100, 0), CUDA_SUCCESS);
  std::memset(host, 1, 100);
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(IllegalCalls(), IsEmpty()) << "to ask is no mistake";
}

TEST_F(MemoryCalls, HostMemoryIsRegisteredOnce) {
  std::vector<char> buffer(8192);
  ASSERT_EQ(cuMemHostRegister(buffer.data(), buffer.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister(buffer.data() + 4096, 4096, 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(buffer.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(buffer.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryCalls, CopiesAreCountedByKindsOfMemory) {
  const CUdeviceptr device = Allocate(8192);
  std::vector<char> pageable(8192);
  std::vector<char> registered(8192);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 8192, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostRegister(registered.data(), 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(device, pageable.data(), 8192), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(device, pinned, 4096, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(device, registered.data(), 1024, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(registered.data() + 4096, device, 512), CUDA_SUCCESS) << "not registered";
  ASSERT_EQ(cuMemcpyDtoD(device, device + 4096, 100), CUDA_SUCCESS);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_PAGEABLE, SIMGPU_DEVICE), 8192u);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_PINNED, SIMGPU_DEVICE), 5120u);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_DEVICE, SIMGPU_PAGEABLE), 512u);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_DEVICE, SIMGPU_PINNED), 0u);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_DEVICE, SIMGPU_DEVICE), 100u);
  EXPECT_EQ(cuMemHostUnregister(registered.data()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(device, registered.data(), 64), CUDA_SUCCESS);
  EXPECT_EQ(simgpu_get_traffic(SIMGPU_PAGEABLE, SIMGPU_DEVICE), 8256u);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(MemoryCalls, PeersReachPlainMemoryWhenEnabled) {
  const CUdeviceptr pointer = Allocate(4096);
  CUcontext other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(simgpu_check(reinterpret_cast<void*>(pointer), "a library"),
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("a library: "));
  EXPECT_THAT(IllegalCalls(), HasSubstr("not device 1 may use"));
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(simgpu_check(reinterpret_cast<void*>(pointer), "a library"), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CUdeviceptr near = 0;
  ASSERT_EQ(cuMemAlloc(&near, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyPeer(near, other, pointer, context_, 4096), CUDA_SUCCESS)
      << "copies reach every device";
}

TEST_F(MemoryCalls, PeersReachVirtualMemoryWhenNamed) {
  const CUdeviceptr base = Reserve(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule, /*device=*/1), 0), CUDA_SUCCESS);
  ASSERT_EQ(Open(base, kGranule, /*device=*/1), CUDA_SUCCESS);
  EXPECT_EQ(simgpu_check(reinterpret_cast<void*>(base), "x"), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(Open(base, kGranule, /*device=*/0), CUDA_SUCCESS);
  EXPECT_EQ(simgpu_check(reinterpret_cast<void*>(base), "x"), CUDA_SUCCESS);
}

using MemoryDeath = MemoryCalls;

TEST_F(MemoryDeath, TheHostCannotTouchDeviceMemory) {
  const CUdeviceptr pointer = Allocate(4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(pointer) = 1, "");
}

}  // namespace
}  // namespace simgpu
