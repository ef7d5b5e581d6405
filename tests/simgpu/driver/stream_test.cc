// Order: streams, events, host functions, numbers that streams wait for, captured graphs.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class StreamCalls : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    stream_ = NewStream();
    other_ = NewStream();
    ASSERT_EQ(cuEventCreate(&event_, 0), CUDA_SUCCESS);
    word_ = Allocate(sizeof(int));
    ASSERT_EQ(cuMemsetD32(word_, 0, 1), CUDA_SUCCESS);
  }

  static CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
  }

  int Word() {
    int value = -1;
    EXPECT_EQ(cuMemcpyDtoH(&value, word_, sizeof(value)), CUDA_SUCCESS);
    return value;
  }

  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr word_ = 0;
};

TEST_F(StreamCalls, NothingHappensOnAHeldStreamUntilItIsResumed) {
  ASSERT_TRUE(simgpu_hold(stream_));
  ASSERT_EQ(cuMemsetD32Async(word_, 5, 1, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 0);
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(other_), CUDA_SUCCESS);
  ASSERT_TRUE(simgpu_resume(stream_));
  ASSERT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 5);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_SUCCESS);
}

TEST_F(StreamCalls, AStreamWaitsForAnEventOfAnother) {
  ASSERT_TRUE(simgpu_hold(stream_));
  ASSERT_EQ(cuMemsetD32Async(word_, 1, 1, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(word_, 2, 1, other_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  ASSERT_TRUE(simgpu_resume(stream_));
  ASSERT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 2);
}

TEST_F(StreamCalls, HostFunctionsRunInOrderOnAnotherThread) {
  struct Seen {
    std::atomic<int> calls{0};
    std::thread::id thread;
  } seen;
  const auto function = [](void* data) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    static_cast<Seen*>(data)->thread = std::this_thread::get_id();
    ++static_cast<Seen*>(data)->calls;
  };
  ASSERT_EQ(cuLaunchHostFunc(stream_, function, &seen), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(word_, 9, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 0) << "behind the function";
  ASSERT_EQ(cuLaunchHostFunc(stream_, function, &seen), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(seen.calls, 2);
  EXPECT_EQ(Word(), 9);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

TEST_F(StreamCalls, AHostFunctionMayNotWait) {
  struct Seen {
    CUstream stream;
    CUresult result;
  } seen = {stream_, CUDA_SUCCESS};
  const auto function = [](void* data) {
    auto* const mine = static_cast<Seen*>(data);
    mine->result = cuStreamSynchronize(mine->stream);
  };
  ASSERT_EQ(cuLaunchHostFunc(stream_, function, &seen), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(seen.result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(StreamCalls, AQueuedCopyTakesPageableMemoryAtOnce) {
  ASSERT_TRUE(simgpu_hold(stream_));
  int value = 3;
  ASSERT_EQ(cuMemcpyHtoDAsync(word_, &value, sizeof(value), stream_), CUDA_SUCCESS);
  value = 4;
  ASSERT_TRUE(simgpu_resume(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 3);
}

TEST_F(StreamCalls, AFreeIsInOrderToo) {
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuMemAllocAsync(&pointer, 4096, stream_), CUDA_SUCCESS);
  ASSERT_TRUE(simgpu_hold(stream_));
  ASSERT_EQ(cuMemFreeAsync(pointer, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(pointer, 1, 4096), CUDA_SUCCESS) << "not freed yet";
  ASSERT_TRUE(simgpu_resume(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(pointer, 1, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(StreamCalls, WorkThatBecameIllegalWhileItWaitedIsOnRecord) {
  const CUdeviceptr base = Reserve(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
  ASSERT_EQ(Open(base, kGranule), CUDA_SUCCESS);
  ASSERT_TRUE(simgpu_hold(stream_));
  ASSERT_EQ(cuMemsetD8Async(base, 1, 1, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  ASSERT_TRUE(simgpu_resume(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("cuMemsetD8Async, when it ran"));
}

TEST_F(StreamCalls, NumbersInMemoryOrderStreams) {
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 8, 0), CUDA_SUCCESS);
  auto* const number = static_cast<volatile std::uint64_t*>(host);
  *number = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  ASSERT_EQ(cuStreamWaitValue64(stream_, address, 7, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(word_, 1, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuStreamWriteValue64(other_, address, 7, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1);
  EXPECT_EQ(*number, 7u);
}

TEST_F(StreamCalls, TimesAreNeverZero) {
  CUevent end = nullptr;
  ASSERT_EQ(cuEventCreate(&end, 0), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event_, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(end, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventElapsedTime(&milliseconds, event_, end), CUDA_SUCCESS);
  EXPECT_GT(milliseconds, 0);
}

TEST_F(StreamCalls, WhatIsDestroyedCannotBeUsed) {
  ASSERT_EQ(cuStreamDestroy(other_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventDestroy(event_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(other_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy(other_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(event_, stream_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventDestroy(event_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemsetD8Async(word_, 1, 1, other_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Counts().illegal_calls, 5u);
}

TEST_F(StreamCalls, AnEventStaysOnItsDevice) {
  CUcontext other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  const CUstream far = NewStream();
  EXPECT_EQ(cuEventRecord(event_, far), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(far, event_, 0), CUDA_SUCCESS) << "but any stream may wait for it";
}

TEST_F(StreamCalls, ACapturedStreamRunsWhenItsGraphIsLaunched) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(word_, 1, 1, stream_), CUDA_SUCCESS);
  // A stream that waits for captured work is captured as well.
  ASSERT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(word_, 8, 1, other_), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_EQ(cuStreamIsCapturing(other_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamIsCapturing(other_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Word(), 0);
  std::size_t nodes = 0;
  ASSERT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 2u);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 8);
  ASSERT_EQ(cuMemFree(word_), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamCalls, NodesOfAnExecutableGraphAreUpdated) {
  CUgraph graph = nullptr;
  CUgraph child = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphCreate(&child, 0), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS fill = {word_, 0, 1, 4, 1, 1};
  CUgraphNode node = nullptr;
  CUgraphNode inner = nullptr;
  ASSERT_EQ(cuGraphAddMemsetNode(&inner, child, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child), CUDA_SUCCESS);
  CUgraphNode last = nullptr;
  fill.value = 2;
  ASSERT_EQ(cuGraphAddMemsetNode(&last, graph, &node, 1, &fill, context_), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 2);
  ASSERT_EQ(cuGraphNodeSetEnabled(executable, last, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 1);
  ASSERT_EQ(cuGraphNodeSetEnabled(executable, last, 1), CUDA_SUCCESS);
  fill.value = 3;
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, last, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 3);
  CUgraph clone = nullptr;
  ASSERT_EQ(cuGraphChildGraphNodeGetGraph(node, &clone), CUDA_SUCCESS);
  std::size_t count = 1;
  ASSERT_EQ(cuGraphGetNodes(clone, &inner, &count), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphNodeSetEnabled(executable, last, 0), CUDA_SUCCESS);
  fill.value = 4;
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, inner, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 4) << "a node inside the child graph";
  ASSERT_EQ(cuGraphNodeSetEnabled(executable, last, 1), CUDA_SUCCESS);
  CUgraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cuGraphExecUpdate(executable, child, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(cuGraphExecUpdate(executable, graph, &info), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Word(), 2);
}

}  // namespace
}  // namespace simgpu
