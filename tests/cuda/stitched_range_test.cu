// One chunk mapped at two addresses: the assumption that all stitching rests on.
//
//   home    | chunk 0 | chunk 1 |      where the chunks were first mapped
//   alias   | chunk 1 | chunk 0 |      the same memory, stitched in the other order
//
// The host driver and the simulated GPU grant this by construction; only hardware can confirm it.
// CUDA promises that a write through one address is seen through another only by later kernels and
// copies, not within one kernel, so every test synchronises in between.

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using Word = std::uint32_t;

// Never zero, and different for every index of a range: a word in the wrong place is noticed.
__host__ __device__ constexpr Word Pattern(std::size_t index) {
  return static_cast<Word>(index) * 2654435761u | 1u;
}

__global__ void WritePattern(Word* words, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    words[i] = Pattern(i);
  }
}

// The runtime finds the driver's functions, so the program links and starts without libcuda.so.1.
template <typename Function>
Function* Driver(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
  EXPECT_TRUE(error == cudaSuccess && found == cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function*>(address);
}
#define DRIVER(function) Driver<decltype(function)>(#function)

class StitchedRange : public testing::Test {
 protected:
  static constexpr std::size_t kChunks = 2;

  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "needs a real GPU";
    }
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = 0;
    ASSERT_EQ(DRIVER(cuMemGetAllocationGranularity)(&chunk_bytes_, &properties_,
                                                    CU_MEM_ALLOC_GRANULARITY_MINIMUM),
              CUDA_SUCCESS);
    for (CUmemGenericAllocationHandle& chunk : chunks_) {
      ASSERT_EQ(DRIVER(cuMemCreate)(&chunk, chunk_bytes_, &properties_, 0), CUDA_SUCCESS);
    }
    ASSERT_NO_FATAL_FAILURE(Stitch({chunks_[0], chunks_[1]}, &home_));
    ASSERT_NO_FATAL_FAILURE(Stitch({chunks_[1], chunks_[0]}, &alias_));
  }

  void TearDown() override {
    for (CUdeviceptr range : {home_, alias_}) {
      if (range != 0) Release(range);
    }
    for (CUmemGenericAllocationHandle chunk : chunks_) {
      if (chunk != 0) EXPECT_EQ(DRIVER(cuMemRelease)(chunk), CUDA_SUCCESS);
    }
  }

  void Stitch(const std::array<CUmemGenericAllocationHandle, kChunks>& order, CUdeviceptr* range) {
    ASSERT_EQ(DRIVER(cuMemAddressReserve)(range, range_bytes(), 0, 0, 0), CUDA_SUCCESS);
    for (std::size_t slot = 0; slot < kChunks; ++slot) {
      ASSERT_EQ(DRIVER(cuMemMap)(*range + slot * chunk_bytes_, chunk_bytes_, 0, order[slot], 0),
                CUDA_SUCCESS);
    }
    // One call for the whole range: the allocator's cost model counts on that too.
    const CUmemAccessDesc access = {properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASSERT_EQ(DRIVER(cuMemSetAccess)(*range, range_bytes(), &access, 1), CUDA_SUCCESS);
  }

  void Release(CUdeviceptr range) {
    EXPECT_EQ(DRIVER(cuMemUnmap)(range, range_bytes()), CUDA_SUCCESS);
    EXPECT_EQ(DRIVER(cuMemAddressFree)(range, range_bytes()), CUDA_SUCCESS);
  }

  void WriteThrough(CUdeviceptr range) {
    WritePattern<<<64, 256>>>(reinterpret_cast<Word*>(range), range_words());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  // A single copy, so that copying across the seam is tested as well.
  std::vector<Word> Read(CUdeviceptr range) {
    std::vector<Word> words(range_words());
    EXPECT_EQ(cudaMemcpy(words.data(), reinterpret_cast<void*>(range), range_bytes(),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    return words;
  }

  // What home must hold once the pattern has gone in through the alias.
  std::vector<Word> PatternWithChunksSwapped() const {
    const std::size_t half = range_words() / kChunks;
    std::vector<Word> words(range_words());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = Pattern((i + half) % words.size());
    return words;
  }

  std::size_t range_bytes() const { return kChunks * chunk_bytes_; }
  std::size_t range_words() const { return range_bytes() / sizeof(Word); }

  CUmemAllocationProp properties_ = {};
  std::size_t chunk_bytes_ = 0;
  std::array<CUmemGenericAllocationHandle, kChunks> chunks_ = {};
  CUdeviceptr home_ = 0;
  CUdeviceptr alias_ = 0;
};

TEST_F(StitchedRange, KernelWritesThroughTheAliasAreSeenAtHome) {
  ASSERT_NO_FATAL_FAILURE(WriteThrough(alias_));
  EXPECT_EQ(Read(home_), PatternWithChunksSwapped());
}

TEST_F(StitchedRange, OneMemsetCrossesTheSeam) {
  ASSERT_EQ(cudaMemset(reinterpret_cast<void*>(alias_), 0x5a, range_bytes()), cudaSuccess);
  EXPECT_EQ(Read(home_), std::vector<Word>(range_words(), 0x5a5a5a5a));
}

// Eviction and trimming take one mapping away while the other stays in use.
TEST_F(StitchedRange, TheBytesOutliveTheAddressTheyWereWrittenThrough) {
  ASSERT_NO_FATAL_FAILURE(WriteThrough(alias_));
  Release(alias_);
  alias_ = 0;
  EXPECT_EQ(Read(home_), PatternWithChunksSwapped());
}

}  // namespace
