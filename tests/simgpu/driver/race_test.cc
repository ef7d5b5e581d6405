// What the simulator says when memory is taken away, or handed on, while work could use it. Nothing
// here takes time: order alone decides.
#include <array>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Races : public Machine {
 protected:
  void SetUp() override {
    Start("gpus:2,memory:1GiB,races:on");
    stream_ = NewStream();
    other_ = NewStream();
    ASSERT_EQ(cuEventCreate(&event_, 0), CUDA_SUCCESS);
    base_ = Reserve(4 * kGranule);
    for (std::size_t i = 0; i < 2; ++i) Map(base_ + i * kGranule, handles_[i] = Create(kGranule));
  }

  static CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
  }
  static void Map(CUdeviceptr address, CUmemGenericAllocationHandle handle) {
    ASSERT_EQ(cuMemMap(address, kGranule, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(Open(address, kGranule), CUDA_SUCCESS);
  }
  static void Use(CUdeviceptr pointer, CUstream stream) {
    ASSERT_EQ(cuMemsetD8Async(pointer, 1, 1, stream), CUDA_SUCCESS);
  }
  // The first stream's work is over before later work of the second.
  void OrderStreams(CUstream first, CUstream second) {
    ASSERT_EQ(cuEventRecord(event_, first), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(second, event_, 0), CUDA_SUCCESS);
  }

  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr base_ = 0;
  std::array<CUmemGenericAllocationHandle, 2> handles_ = {};
};

TEST_F(Races, MemoryMayBeUnmappedWhenTheHostKnowsThatItsWorkIsOver) {
  Use(base_, stream_);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS);
  Use(base_ + kGranule, stream_);
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventQuery(event_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_ + kGranule, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, MemoryOfWorkIsUnmapped) {
  Use(base_, stream_);
  EXPECT_EQ(cuMemUnmap(base_ + kGranule, kGranule), CUDA_SUCCESS) << "nobody uses that";
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  Use(base_, stream_);
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);  // a point too early
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(),
              AllOf(HasSubstr("cuMemUnmap: 2097152 bytes at 0x"),
                    HasSubstr("are unmapped while cuMemsetD8Async on stream"),
                    HasSubstr("(work 2 there"), HasSubstr("nobody waited for that")));
}

TEST_F(Races, AWaitForAnotherStreamIsNoWait) {
  Use(base_, stream_);
  ASSERT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("are unmapped while"));
}

TEST_F(Races, AWaitForAStreamThatWaitedIsOne) {
  Use(base_, stream_);
  OrderStreams(stream_, other_);
  ASSERT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, AHostFunctionKnowsWhatIsBeforeIt) {
  Use(base_, stream_);
  static CUdeviceptr address;
  address = base_;
  ASSERT_EQ(cuLaunchHostFunc(
                stream_, [](void*) { cuMemUnmap(address, kGranule); }, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, BytesAreHandedOnToAnotherStream) {
  simgpu_block_begin(base_, 4096);
  Use(base_ + 100, stream_);
  simgpu_block_end(base_);
  simgpu_block_begin(base_ + 2048, 512);
  Use(base_ + 2048, stream_);
  EXPECT_THAT(IllegalCalls(), IsEmpty()) << "the stream keeps its own order";
  Use(base_ + 2048, other_);
  EXPECT_THAT(IllegalCalls(),
              AllOf(HasSubstr("race: cuMemsetD8Async on stream"), HasSubstr("with 512 bytes at"),
                    HasSubstr("with 4096 bytes at"), HasSubstr("handed on")));
}

TEST_F(Races, BytesAreHandedOnInOrder) {
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  simgpu_block_end(base_);
  simgpu_block_begin(base_, 4096);
  OrderStreams(stream_, other_);
  Use(base_, other_);
  simgpu_block_end(base_);
  ASSERT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, ABlockIsTheProgramsAffairWhileItLives) {
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  Use(base_, other_);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, ABlockOfTwoStreamsMustWaitForBoth) {
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  Use(base_, other_);
  simgpu_block_end(base_);
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  EXPECT_THAT(IllegalCalls(), HasSubstr("handed on"));
}

TEST_F(Races, TheSameBytesAtAnotherAddressAreTheSameBytes) {
  const CUdeviceptr alias = base_ + 2 * kGranule;
  Map(alias, handles_[1]);
  Map(alias + kGranule, handles_[0]);
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  simgpu_block_end(base_);
  simgpu_block_begin(alias, kGranule + 1024);
  Use(alias, other_);
  EXPECT_THAT(IllegalCalls(), HasSubstr("handed on"));
}

TEST_F(Races, BytesThatAreMappedUnderALiveBlockCountToo) {
  simgpu_block_begin(base_, 4096);
  Use(base_, stream_);
  simgpu_block_end(base_);
  const CUdeviceptr address = base_ + 2 * kGranule;
  simgpu_block_begin(address, kGranule);
  Map(address, handles_[0]);
  Use(address, other_);
  EXPECT_THAT(IllegalCalls(), HasSubstr("handed on"));
}

TEST_F(Races, AGraphHoldsTheMemoryOfItsNodes) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill = {base_, 0, 0, 1, 64, 1};
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("while fill of a graph on stream"));
}

TEST_F(Races, APoolFreesInOrder) {
  CUdeviceptr good = 0;
  CUdeviceptr bad = 0;
  for (CUdeviceptr* const pointer : {&good, &bad}) {
    ASSERT_EQ(cuMemAllocAsync(pointer, 4096, stream_), CUDA_SUCCESS);
    Use(*pointer, stream_);
  }
  EXPECT_EQ(cuMemFreeAsync(good, stream_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  EXPECT_EQ(cuMemFreeAsync(bad, other_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("cuMemFreeAsync: 4096 bytes at"));
}

TEST_F(Races, APlainFreeWaits) {
  const CUdeviceptr block = Allocate(4096);
  Use(block, stream_);
  Use(base_, stream_);
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, kGranule), CUDA_SUCCESS) << "now the host knows everything";
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Races, HostMemoryUnderACopyIsChanged) {
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(base_, host, 4096, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  std::memset(host, 1, 4096);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  ASSERT_EQ(cuMemcpyHtoDAsync(base_, host, 4096, stream_), CUDA_SUCCESS);
  std::memset(host, 2, 4096);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), AllOf(HasSubstr("race: the program changed 4096 bytes at 0x"),
                                    HasSubstr("cuMemcpyHtoDAsync on stream")));
}

TEST_F(Races, HostMemoryUnderACopyIsUsedByAnother) {
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(base_, host, 4096, stream_), CUDA_SUCCESS);
  OrderStreams(stream_, other_);
  ASSERT_EQ(cuMemcpyDtoHAsync(host, base_, 4096, other_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty()) << "one after the other";
  ASSERT_EQ(cuMemcpyDtoHAsync(host, base_, 4096, stream_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(),
              AllOf(HasSubstr("race: cuMemcpyDtoHAsync on stream"), HasSubstr("uses 4096 bytes at"),
                    HasSubstr("of host memory while")));
}

TEST_F(Races, HostMemoryUnderACopyIsUnpinned) {
  std::array<char, 4096> host = {};
  ASSERT_EQ(cuMemHostRegister(host.data(), host.size(), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync(host.data(), base_, host.size(), stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), AllOf(HasSubstr("cuMemHostUnregister: 4096 bytes at 0x"),
                                    HasSubstr("are unpinned while cuMemcpyDtoHAsync on stream")));
}

TEST_F(Races, AreNotWatchedWithoutBeingAskedFor) {
  Start("memory:1GiB");
  const CUdeviceptr base = Reserve(kGranule);
  Map(base, Create(kGranule));
  Use(base, NewStream());
  EXPECT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

}  // namespace
}  // namespace simgpu
