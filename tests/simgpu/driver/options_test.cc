// SIMGPU_CONF, calls that fail on request, the log, and what devices say about themselves.
#include "tests/simgpu/driver/options.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string ErrorOf(const std::string& conf) {
  Options options;
  std::string error;
  EXPECT_FALSE(ParseOptions(conf, &options, &error)) << conf;
  return error;
}

TEST(OptionsText, AreReadAsWritten) {
  Options options;
  std::string error;
  ASSERT_TRUE(ParseOptions("gpus:3,memory:40000000000;1.5GiB,name:A;B,reserve:1MiB,vmm:off",
                           &options, &error));
  EXPECT_EQ(options.gpus, 3);
  EXPECT_EQ(options.MemoryOf(0), 40000000000u);
  EXPECT_EQ(options.MemoryOf(2), Bytes{3} << 29);
  EXPECT_EQ(options.NameOf(0), "A");
  EXPECT_EQ(options.NameOf(5), "B");
  EXPECT_FALSE(options.vmm);
  EXPECT_TRUE(ParseOptions("", &options, &error));
  EXPECT_EQ(options.gpus, 1);
}

TEST(OptionsText, MistakesAreNamedWithTheRemedy) {
  EXPECT_THAT(ErrorOf("gpu:2"), HasSubstr("unknown key 'gpu'; valid are capability, clock, copy"));
  EXPECT_EQ(ErrorOf("gpus"), "'gpus' is not key:value");
  EXPECT_EQ(ErrorOf("gpus:1,gpus:2"), "'gpus' is given twice");
  EXPECT_EQ(ErrorOf("gpus:17"), "gpus: '17' is not a number from 0 to 16");
  EXPECT_EQ(ErrorOf("nvlinks:19"), "nvlinks: '19' is not a number from 0 to 18");
  EXPECT_EQ(ErrorOf("numa:64"), "numa: '64' is not a number from -1 to 63");
  EXPECT_THAT(ErrorOf("defects:part;leak"), HasSubstr("'part;leak' is not alias, onto, part"));
  EXPECT_EQ(ErrorOf("vmm:yes"), "vmm: 'yes' is not 'on' or 'off'");
  EXPECT_EQ(ErrorOf("log:"), "log: '' is not the path of a file");
  for (const char* const size : {"", "-1", "1GB", "x", "1e30", "nan", "9999999TiB"}) {
    EXPECT_THAT(ErrorOf(std::string("memory:") + size), StartsWith("memory: ")) << size;
  }
  for (const char* const fault : {"", "cuInit", "cuInit@", "cuInit@0", "@3", "cuInit@3=NO", ";"}) {
    EXPECT_THAT(ErrorOf(std::string("fault:") + fault), HasSubstr("NAME@K")) << fault;
  }
}

std::string WriteProfile(const std::string& text) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/a_profile";
  std::ofstream(path) << text;
  return path;
}

TEST(OptionsText, MistakesInClocksAreNamedWithTheRemedy) {
  EXPECT_EQ(ErrorOf("clock:a1000"),
            "clock: 'a1000' is not off, a100, h100, v100, t4, gtx1080ti, or the path of a file "
            "that can be read");
  EXPECT_EQ(ErrorOf("clock:a100,slow:0"), "slow: '0' is not a number from 1 to 1000");
  EXPECT_EQ(ErrorOf("slow:2"), "slow: needs a clock, such as clock:a100");
  EXPECT_THAT(ErrorOf("races:maybe"), HasSubstr("'on', 'off' or 'auto'"));
  const auto error_in = [](const std::string& text) {
    return ErrorOf("clock:" + WriteProfile(text));
  };
  EXPECT_THAT(error_in("speed 3"), HasSubstr("a_profile:1: unknown field 'speed'; valid are "));
  EXPECT_THAT(error_in("\n# x\nmap_us fast"),
              HasSubstr(":3: map_us: 'fast' is not a number from 0 on"));
  EXPECT_THAT(error_in("map_us"), HasSubstr(":1: map_us: '' is not a number from 0 on"));
  EXPECT_THAT(error_in("map_us 1 2"), HasSubstr(":1: map_us: '2' is not a number"));
  EXPECT_THAT(error_in("map_us 1\nmap_us 1"), HasSubstr(":2: 'map_us' is given twice"));
  EXPECT_THAT(error_in("memory_gbps 0"), HasSubstr("'0' is not a number above 0"));
  EXPECT_THAT(error_in("memory_gbps nan"), HasSubstr("'nan' is not a number above 0"));
  EXPECT_THAT(error_in("memory_efficiency 1.1"), HasSubstr("above 0 and at most 1"));
  EXPECT_THAT(error_in("map_us 1"),
              HasSubstr("the field 'alloc_us' is missing: add the line 'alloc_us VALUE'"));
  EXPECT_THAT(error_in(std::string("\x7f"
                                   "ELF\0\1",
                                   6)),
              HasSubstr("unknown field"));
}

TEST(OptionsText, BuiltInClocksAreComplete) {
  for (const char* const name : {"a100", "h100", "v100", "t4", "gtx1080ti"}) {
    Options options;
    std::string error;
    EXPECT_TRUE(ParseOptions(std::string("clock:") + name, &options, &error)) << error;
    EXPECT_TRUE(options.has_clock());
    EXPECT_TRUE(options.has_races());
  }
}

TEST(OptionsText, BadOnesFailCuInit) {
  simgpu_restart("gpus:many");
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("SIMGPU_CONF: gpus: 'many'"));
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  simgpu_restart("log:/nowhere/at/all");
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'/nowhere/at/all'"));
}

class Faulty : public Machine {
 protected:
  static std::vector<bool> Allocations(int count) {
    std::vector<bool> worked;
    for (int i = 0; i < count; ++i) {
      CUdeviceptr pointer = 0;
      worked.push_back(cuMemAlloc(&pointer, 512) == CUDA_SUCCESS);
    }
    return worked;
  }
};

TEST_F(Faulty, OneCallFails) {
  Start("fault:cuMemAlloc@2");
  EXPECT_THAT(Allocations(4), ElementsAre(true, false, true, true));
}

TEST_F(Faulty, AllCallsFromOneOnFail) {
  Start("fault:cuMemAlloc@2+");
  EXPECT_THAT(Allocations(4), ElementsAre(true, false, false, false));
}

TEST_F(Faulty, EveryThirdCallFails) {
  Start("fault:cuMemAlloc/3");
  EXPECT_THAT(Allocations(6), ElementsAre(true, true, false, true, true, false));
}

TEST_F(Faulty, ErrorsAreTheUsualOnesOrAsAskedFor) {
  Start("fault:cuMemAlloc@1;cuStreamCreate@1;cuEventCreate@1=CUDA_ERROR_ECC_UNCORRECTABLE");
  CUdeviceptr pointer = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  EXPECT_EQ(cuMemAlloc(&pointer, 512), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST_F(Faulty, AStarMeansEveryCall) {
  simgpu_restart("fault:*@3");
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
}

std::vector<std::string>& Lines() {
  static auto* const lines = new std::vector<std::string>;
  return *lines;
}

TEST_F(Faulty, TheLogHasEveryCallWithItsResult) {
  Start("fault:cuMemAlloc@2");
  Lines().clear();
  simgpu_watch([](const char* line) { Lines().push_back(line); });
  Allocations(2);
  CUstream stream = nullptr;
  cuStreamQuery(reinterpret_cast<CUstream>(&stream));
  simgpu_watch(nullptr);
  Allocations(1);
  EXPECT_THAT(Lines(), ElementsAre("cuMemAlloc size=512",
                                   "cuMemAlloc size=512 (injected) = CUDA_ERROR_OUT_OF_MEMORY",
                                   HasSubstr("= CUDA_ERROR_INVALID_HANDLE")));
}

using Devices = Machine;

TEST_F(Devices, AreAsManyAndAsNamed) {
  Start("gpus:2,name:One;Two,memory:8GiB,capability:90,peers:off,vmm:off");
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  char name[64];
  ASSERT_EQ(cuDeviceGetName(name, sizeof(name), 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, "Two");
  std::size_t bytes = 0;
  ASSERT_EQ(cuDeviceTotalMem(&bytes, 1), CUDA_SUCCESS);
  EXPECT_EQ(bytes, std::size_t{8} << 30);
  int value = -1;
  ASSERT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 9);
  ASSERT_EQ(
      cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  ASSERT_EQ(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  CUdevice device = 0;
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, NoDeviceIsSaidByCuInit) {
  simgpu_restart("gpus:0");
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST_F(Devices, ContextsAreStackedPerThreadAndMustBeAlive) {
  CUcontext current = nullptr;
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent(second), CUDA_SUCCESS);
  CUdevice device = -1;
  ASSERT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuCtxPopCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, second);
  EXPECT_EQ(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context_);
}

TEST_F(Devices, FunctionsAreFoundByNameAndVersion) {
  void* function = nullptr;
  ASSERT_EQ(cuGetProcAddress("cuMemAlloc", &function, 12050, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc));
  ASSERT_EQ(cuGetProcAddress("cuEventElapsedTime", &function, 12050, 0, nullptr), CUDA_SUCCESS);
  EXPECT_NE(function, reinterpret_cast<void*>(&cuEventElapsedTime))
      << "its second version is newer";
  EXPECT_EQ(cuGetProcAddress("cuNothing", &function, 12050, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  const char* name = nullptr;
  ASSERT_EQ(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

}  // namespace
}  // namespace simgpu
