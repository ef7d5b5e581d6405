// Chunks of cuMemCreate on the host: what they cost, where they may be mapped, who reaches them.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class HostChunks : public Machine {
 protected:
  static CUmemAllocationProp On(CUmemLocationType type, int id = 0) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = type;
    prop.location.id = id;
    return prop;
  }
  static CUresult TryCreate(const CUmemAllocationProp& prop, std::size_t bytes = kGranule) {
    CUmemGenericAllocationHandle handle = 0;
    return cuMemCreate(&handle, bytes, &prop, 0);
  }
  static CUmemGenericAllocationHandle CreateOnHost(std::size_t bytes = kGranule) {
    const CUmemAllocationProp prop = On(CU_MEM_LOCATION_TYPE_HOST_NUMA);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  static int Attribute(CUdevice_attribute attribute) {
    int value = 0;
    EXPECT_EQ(cuDeviceGetAttribute(&value, attribute, 0), CUDA_SUCCESS);
    return value;
  }
  static simgpu_host Host() {
    simgpu_host host;
    simgpu_get_host(&host);
    return host;
  }
  static std::vector<char> Read(CUdeviceptr pointer, std::size_t bytes) {
    std::vector<char> data(bytes);
    EXPECT_EQ(cuMemcpyDtoH(data.data(), pointer, bytes), CUDA_SUCCESS);
    return data;
  }
};

TEST_F(HostChunks, CostTheHostAndNotTheDevice) {
  Start("memory:64MiB");
  const CUmemGenericAllocationHandle chunk = CreateOnHost(100 * kGranule);
  EXPECT_EQ(FreeBytes(), 32 * kGranule) << "it is larger than the device";
  EXPECT_EQ(Host().chunks, 100 * kGranule);
  const CUdeviceptr base = Reserve(100 * kGranule);
  EXPECT_EQ(cuMemMap(base, 100 * kGranule, 0, chunk, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(chunk), CUDA_SUCCESS);
  EXPECT_EQ(Host().chunks, 100 * kGranule) << "R7";
  EXPECT_EQ(cuMemUnmap(base, 100 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(Host().chunks, 0u);
  EXPECT_EQ(Host().peak, 100 * kGranule);
  EXPECT_EQ(Counts().chunks, 0u);
}

TEST_F(HostChunks, LieBesideDeviceChunksAndCopiesReachBoth) {
  const CUdeviceptr base = Reserve(2 * kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kGranule, kGranule, 0, CreateOnHost(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, 2 * kGranule), CUDA_ERROR_ILLEGAL_ADDRESS) << "R4";
  ASSERT_EQ(Open(base, 2 * kGranule), CUDA_SUCCESS);
  std::vector<char> data(2 * kGranule);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 >> 8);
  ASSERT_EQ(cuMemcpyHtoD(base, data.data(), data.size()), CUDA_SUCCESS);
  EXPECT_EQ(Read(base, data.size()), data);
}

TEST_F(HostChunks, DemotionAndPromotionKeepEveryByteHoweverLong) {
  Start("copy:0");  // no byte moves between two places on a device
  const CUdeviceptr base = Reserve(2 * kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kGranule, kGranule, 0, CreateOnHost(), 0), CUDA_SUCCESS);
  ASSERT_EQ(Open(base, 2 * kGranule), CUDA_SUCCESS);
  const std::vector<char> data(kGranule, 'x');
  ASSERT_EQ(cuMemcpyHtoD(base, data.data(), kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(base + kGranule, base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(Read(base + kGranule, kGranule), data);
  ASSERT_EQ(cuMemsetD8(base, 0, kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(base, base + kGranule, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(Read(base, kGranule), data);
}

TEST_F(HostChunks, ReportWhereTheyAre) {
  const CUmemGenericAllocationHandle chunk = CreateOnHost();
  CUmemAllocationProp prop = {};
  ASSERT_EQ(cuMemGetAllocationPropertiesFromHandle(&prop, chunk), CUDA_SUCCESS);
  EXPECT_EQ(prop.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  const CUdeviceptr base = Reserve(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, chunk, 0), CUDA_SUCCESS);
  ASSERT_EQ(Open(base, kGranule), CUDA_SUCCESS);
  unsigned type = 0;
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, chunk, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("bytes of cuMemCreate on the host, which no device"));
}

TEST_F(HostChunks, KindsAreOfferedByOption) {
  Start("numa_chunks:off");
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 0);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 0);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA)), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST)), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_THAT(IllegalCalls(), IsEmpty()) << "programs may find out by trying";
  Start("host_chunks:on");
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA)), CUDA_SUCCESS);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST, /*id=*/7)), CUDA_SUCCESS) << "id is ignored";
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED), 0);
  Start("vmm:off,host_chunks:on");
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 0);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST)), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(HostChunks, NodesAreThoseOfTheMachine) {
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1)), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_THAT(IllegalCalls(), HasSubstr("there is no NUMA node 1"));
  Start("numa:1");
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 1);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1)), CUDA_SUCCESS);
  Start("numa:-1");
  EXPECT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), -1);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA, -1)), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0)), CUDA_SUCCESS);
}

TEST_F(HostChunks, FollowTheRulesOfChunks) {
  Start("host_chunks:on");
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA), kGranule / 2), CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp shared = On(CU_MEM_LOCATION_TYPE_HOST);
  shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(TryCreate(shared), CUDA_ERROR_INVALID_VALUE);
  shared.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  EXPECT_EQ(TryCreate(shared), CUDA_SUCCESS);
  EXPECT_EQ(TryCreate(On(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)), CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp prop = On(CU_MEM_LOCATION_TYPE_HOST_NUMA);
  std::size_t granularity = 0;
  EXPECT_EQ(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  EXPECT_EQ(granularity, kGranule);
}

TEST_F(HostChunks, ProvokedCallsFailWithoutBeingListed) {
  simgpu_provoke(1);
  EXPECT_EQ(cuMemUnmap(Reserve(kGranule), kGranule), CUDA_ERROR_INVALID_VALUE);
  simgpu_provoke(0);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  EXPECT_EQ(Counts().illegal_calls, 0u);
  EXPECT_EQ(cuMemUnmap(Reserve(kGranule), kGranule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Counts().illegal_calls, 1u);
}

}  // namespace
}  // namespace simgpu
