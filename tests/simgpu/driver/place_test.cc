// What time work takes depends on where its memory is.
#include <cstdlib>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"
#include "tests/simgpu/driver/paging.h"

namespace simgpu {
namespace {

using testing::IsEmpty;

// A GPU whose memory is ten times as fast as its bus: a megabyte takes 0.1 ms or 1 ms.
constexpr char kProfile[] = R"(
fp64_tflops 1
fp32_tflops 1
tf32_tflops 1
half_tflops 1
byte_tflops 1
simd_efficiency 1
tensor_efficiency 1
memory_gbps 10
memory_efficiency 1
bus_in_gbps 1
bus_in_us 0
bus_out_gbps 1
bus_out_us 0
pageable_gbps 0.5
nvlink_gbps 0
launch_us 0
reserve_us 0
create_us 0
map_us 0
set_access_us 0
unmap_us 0
alloc_us 0
alloc_us_per_mib 0
free_us 0
)";
constexpr std::size_t kMany = 5 * kPageBytes;
constexpr double kHere = kMany / 10e9;  // seconds in the device's memory
constexpr double kOver = kMany / 1e9;   // over the bus
constexpr double kExact = 1e-6;         // some times are rounded to nanoseconds

class Places : public Machine {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("TEST_TMPDIR");
    const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/profile";
    std::ofstream(path) << kProfile;
    Start("memory:1GiB,slow:1,clock:" + path);
  }
  void TearDown() override {
    EXPECT_THAT(IllegalCalls(), IsEmpty());
    Machine::TearDown();
  }

  // Seconds for which an engine of the device was busy since the last question, as modelled.
  double Since(double simgpu_times::*engine) {
    simgpu_times now;
    EXPECT_TRUE(simgpu_get_times(0, &now));
    const double seconds = now.*engine - last_.*engine;
    last_ = now;
    return seconds;
  }
  double TimeFill(CUdeviceptr pointer, std::size_t bytes = kMany) {
    EXPECT_EQ(cuMemsetD8(pointer, 0, bytes), CUDA_SUCCESS);
    return Since(&simgpu_times::compute);
  }

  // A chunk on the host in the middle of three mappings.
  CUdeviceptr MapThree() {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemGenericAllocationHandle host = 0;
    EXPECT_EQ(cuMemCreate(&host, kMany, &prop, 0), CUDA_SUCCESS);
    const CUdeviceptr base = Reserve(3 * kMany);
    EXPECT_EQ(cuMemMap(base, kMany, 0, Create(kMany), 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(base + kMany, kMany, 0, host, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(base + 2 * kMany, kMany, 0, Create(kMany), 0), CUDA_SUCCESS);
    EXPECT_EQ(Open(base, 3 * kMany), CUDA_SUCCESS);
    return base;
  }

  simgpu_times last_ = {};
};

TEST_F(Places, KernelsReachChunksOnTheHostOverTheBus) {
  const CUdeviceptr base = MapThree();
  EXPECT_NEAR(TimeFill(base), kHere, kExact);
  EXPECT_NEAR(TimeFill(base + kMany), kOver, kExact);
  EXPECT_NEAR(TimeFill(base, 3 * kMany), kOver, kExact) << "beside what it does on the device";
  EXPECT_NEAR(TimeFill(base, kMany + kPageBytes), kOver / 5, kExact);
}

TEST_F(Places, CopiesToChunksOnTheHostCrossTheBus) {
  const CUdeviceptr base = MapThree();
  const auto copy = [&](CUdeviceptr to, CUdeviceptr from, double simgpu_times::*engine) {
    EXPECT_EQ(cuMemcpyDtoD(to, from, kMany), CUDA_SUCCESS);
    return Since(engine);
  };
  EXPECT_NEAR(copy(base + 2 * kMany, base, &simgpu_times::compute), 2 * kHere, kExact);
  EXPECT_NEAR(copy(base + kMany, base, &simgpu_times::out), kOver, kExact);
  EXPECT_NEAR(copy(base, base + kMany, &simgpu_times::in), kOver, kExact);
}

TEST_F(Places, ManagedPagesComeBeforeTheWorkBegins) {
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocManaged(&pointer, kMany, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  const double faults = TimeFill(pointer) - kHere;
  EXPECT_GE(faults, 5 * 20e-6);
  EXPECT_LE(faults, 5 * 50e-6);
  EXPECT_NEAR(TimeFill(pointer), kHere, kExact);
  const auto prefetch = [&](CUmemLocationType type, double simgpu_times::*engine) {
    CUmemLocation location = {};
    location.type = type;
    EXPECT_EQ(cuMemPrefetchAsync(pointer, kMany, location, 0, nullptr), CUDA_SUCCESS);
    return Since(engine);
  };
  EXPECT_NEAR(prefetch(CU_MEM_LOCATION_TYPE_HOST, &simgpu_times::out), kOver, kExact);
  EXPECT_NEAR(TimeFill(pointer), kHere + faults + kOver, kExact);
  EXPECT_NEAR(prefetch(CU_MEM_LOCATION_TYPE_HOST, &simgpu_times::out), kOver, kExact);
  EXPECT_NEAR(prefetch(CU_MEM_LOCATION_TYPE_DEVICE, &simgpu_times::in), kOver, kExact);
  EXPECT_NEAR(TimeFill(pointer), kHere, kExact);
}

}  // namespace
}  // namespace simgpu
