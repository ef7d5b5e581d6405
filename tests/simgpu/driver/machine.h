// A simulated machine for one test: started anew with its options, with the primary context of
// device 0 current.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include "cuda.h"
#include "gtest/gtest.h"
#include "tests/simgpu/driver/control.h"

namespace simgpu {

class Machine : public testing::Test {
 protected:
  static constexpr std::size_t kGranule = std::size_t{2} << 20;

  void SetUp() override { Start("gpus:2,memory:1GiB"); }
  void TearDown() override {
    CUcontext context = nullptr;
    cuCtxPopCurrent(&context);
  }

  void Start(const std::string& conf) {
    const char* const folder = std::getenv("TEST_TMPDIR");
    illegal_path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/illegal";
    std::remove(illegal_path_.c_str());
    simgpu_restart((conf + ",illegal:" + illegal_path_).c_str());
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }

  // What the list of illegal calls says since the machine was started.
  std::string IllegalCalls() const {
    std::ifstream file(illegal_path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  static std::size_t FreeBytes() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    return free_bytes;
  }

  static simgpu_counts Counts() {
    simgpu_counts counts;
    simgpu_get_counts(&counts);
    return counts;
  }

  static CUmemLocation Location(int device) {
    CUmemLocation location = {};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    return location;
  }

  static CUdeviceptr Allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }

  static CUdeviceptr Reserve(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAddressReserve(&pointer, bytes, 0, 0, 0), CUDA_SUCCESS);
    return pointer;
  }

  static CUmemGenericAllocationHandle Create(std::size_t bytes, int device = 0,
                                             bool shareable = false) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = Location(device);
    if (shareable) prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }

  static CUresult Open(CUdeviceptr pointer, std::size_t bytes, int device = 0) {
    CUmemAccessDesc access = {};
    access.location = Location(device);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuMemSetAccess(pointer, bytes, &access, 1);
  }

  CUcontext context_ = nullptr;

 private:
  std::string illegal_path_;
};

}  // namespace simgpu
