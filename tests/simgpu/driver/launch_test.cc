// What can be seen of a kernel: its arguments, and that its results are made up.
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A module as ptxas writes it, reduced to what is read: kernel "scale" with parameters of `sizes`
// bytes, and a variable "table" of 40 bytes.
std::vector<char> MakeModule(const std::vector<std::uint32_t>& sizes) {
  const std::string names = std::string("\0.names\0.nv.info.scale\0.symbols\0table\0", 38);
  std::string info;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint16_t ordinal = static_cast<std::uint16_t>(i);
    const std::uint32_t packed = sizes[i] << 18;
    info += std::string("\x04\x17\x0c\x00\x00\x00\x00\x00", 8);
    info.append(reinterpret_cast<const char*>(&ordinal), 2);
    info.append(2, '\0');
    info.append(reinterpret_cast<const char*>(&packed), 4);
  }
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 32;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbols[1].st_size = 40;

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[4] = {};
  const std::size_t data = sizeof(header) + sizeof(sections);
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = data;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 8;
  sections[2].sh_offset = data + names.size();
  sections[2].sh_size = info.size();
  sections[3].sh_name = 23;
  sections[3].sh_type = SHT_SYMTAB;
  sections[3].sh_link = 1;
  sections[3].sh_offset = data + names.size() + info.size();
  sections[3].sh_size = sizeof(symbols);

  std::string image(reinterpret_cast<const char*>(&header), sizeof(header));
  image.append(reinterpret_cast<const char*>(sections), sizeof(sections));
  image += names + info;
  image.append(reinterpret_cast<const char*>(symbols), sizeof(symbols));
  return {image.begin(), image.end()};
}

class Launches : public Machine {
 protected:
  void SetUp() override { Begin("gpus:2,memory:1GiB"); }

  void Begin(const std::string& conf) {
    Start(conf);
    ASSERT_EQ(cuModuleLoadData(&module_, MakeModule({8, 4, 16}).data()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&scale_, module_, "scale"), CUDA_SUCCESS);
  }

  // Mapped memory, with more than a small number in the lower half of its address.
  static CUdeviceptr Mapped() {
    CUdeviceptr base = 0;
    EXPECT_EQ(cuMemAddressReserve(&base, 64 << 20, 64 << 20, 0, 0), CUDA_SUCCESS);
    base += 48 << 20;
    EXPECT_EQ(cuMemMap(base, kGranule, 0, Create(kGranule), 0), CUDA_SUCCESS);
    EXPECT_EQ(Open(base, kGranule), CUDA_SUCCESS);
    return base;
  }

  CUresult Launch(CUdeviceptr pointer, CUdeviceptr inner = 0) {
    int count = -1;
    CUdeviceptr pair[2] = {1, inner};
    void* parameters[] = {&pointer, &count, pair};
    return cuLaunchKernel(scale_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  }

  CUmodule module_ = nullptr;
  CUfunction scale_ = nullptr;
};

TEST_F(Launches, PointersIntoLiveMemoryAndOtherNumbersPass) {
  const CUdeviceptr pointer = Allocate(4096);
  EXPECT_EQ(Launch(pointer, pointer + 4095), CUDA_SUCCESS);
  EXPECT_EQ(Launch(0, ~CUdeviceptr{0}), CUDA_SUCCESS);
  EXPECT_EQ(Launch(reinterpret_cast<CUdeviceptr>(&pointer)), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
}

TEST_F(Launches, APointerIntoFreedMemoryIsAnIllegalAddress) {
  const CUdeviceptr pointer = Allocate(4096);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(Launch(pointer + 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(IllegalCalls(), HasSubstr("kernel scale gets 0x"));
  EXPECT_THAT(IllegalCalls(), HasSubstr("4096 bytes of cuMemAlloc, freed by cuMemFree on thread"));
}

TEST_F(Launches, APointerInsideAStructureIsSeen) {
  Begin("memory:1GiB,races:on");
  const CUdeviceptr base = Mapped();
  EXPECT_EQ(Launch(0, base), CUDA_SUCCESS);
  cuMemUnmap(base, kGranule);
  EXPECT_THAT(IllegalCalls(), HasSubstr("may still use it"));
}

TEST_F(Launches, WhatAnEarlierCallLeftInAStructureIsNoPointer) {
  const CUdeviceptr freed = Allocate(4096);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  EXPECT_EQ(Launch(0, freed), CUDA_SUCCESS);
  EXPECT_THAT(IllegalCalls(), IsEmpty());
  EXPECT_EQ(Launch(freed), CUDA_ERROR_ILLEGAL_ADDRESS) << "as a parameter of its own it is one";
}

// On a machine whose memory has a million bytes per millisecond, and whose launches take no time.
class TimedLaunches : public Machine {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("TEST_TMPDIR");
    const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/launch_profile";
    std::ofstream file(path);
    for (const char* const one :
         {"fp64_tflops", "fp32_tflops", "simd_efficiency", "tensor_efficiency", "memory_gbps",
          "memory_efficiency", "bus_in_gbps", "bus_out_gbps", "pageable_gbps"}) {
      file << one << " 1\n";
    }
    for (const char* const none :
         {"tf32_tflops", "half_tflops", "byte_tflops", "bus_in_us", "bus_out_us", "nvlink_gbps",
          "launch_us", "reserve_us", "create_us", "map_us", "set_access_us", "unmap_us", "alloc_us",
          "alloc_us_per_mib", "free_us"}) {
      file << none << " 0\n";
    }
    file.close();
    Start("memory:1GiB,clock:" + path);
    ASSERT_EQ(cuEventCreate(&begin_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&end_, 0), CUDA_SUCCESS);
    block_ = Allocate(50'000'000);
  }

  // Of a kernel with such parameters, in blocks of 1,000 threads.
  float Milliseconds(const std::vector<std::uint32_t>& sizes, std::vector<void*> parameters,
                     unsigned blocks) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, MakeModule(sizes).data()), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "scale"), CUDA_SUCCESS);
    // The device is busy meanwhile, so nothing but the kernel is between the events.
    EXPECT_EQ(cuMemsetD8Async(block_, 0, 50'000'000, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(begin_, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(
        cuLaunchKernel(function, blocks, 1, 1, 1000, 1, 1, 0, nullptr, parameters.data(), nullptr),
        CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(end_, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(end_), CUDA_SUCCESS);
    float milliseconds = 0;
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin_, end_), CUDA_SUCCESS);
    return milliseconds;
  }

  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  CUdeviceptr block_ = 0;
};

TEST_F(TimedLaunches, TakeWhatTheirArgumentsSay) {
  CUdeviceptr first = block_;
  CUdeviceptr second = block_ + 4096;
  // As XLA launches kernels: 16 bytes of each operand for each of a million threads.
  EXPECT_FLOAT_EQ(Milliseconds({8, 8}, {&first, &second}, 1000), 32);
  // A loop over as many elements as an int says.
  int elements = 3'000'000;
  EXPECT_FLOAT_EQ(Milliseconds({8, 4}, {&first, &elements}, 1), 12);
  // An int that is a float's bits, and says nothing.
  float rate = 0.5f;
  EXPECT_FLOAT_EQ(Milliseconds({8, 4}, {&first, &rate}, 1000), 16);
}

TEST_F(TimedLaunches, TakeTheSizesOfTheTensorsThatMlirDescribes) {
  CUdeviceptr first = block_;
  CUdeviceptr second = block_ + 4096;
  int zero = 0;
  int rows = 5000;
  int columns = 200;
  int one = 1;
  // A matrix, a number that belongs to nothing, and a row that is read again for every other one.
  EXPECT_FLOAT_EQ(Milliseconds({8, 8, 4, 4, 4, 4, 4, 4, 8, 8, 4, 4, 4, 4, 4},
                               {&first, &first, &zero, &rows, &columns, &columns, &one, &rows,
                                &second, &second, &zero, &rows, &columns, &zero, &one},
                               1000),
                  4 * (1'000'000 + 200) * 1e-6f);
}

TEST_F(Launches, ArgumentsInABufferAreSeen) {
  Begin("memory:1GiB,races:on");
  CUdeviceptr buffer[2] = {0, Mapped()};
  std::size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cuLaunchKernel(scale_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  cuMemUnmap(buffer[1], kGranule);
  EXPECT_THAT(IllegalCalls(), HasSubstr("may still use it"));
}

TEST_F(Launches, NodesOfGraphsAreLookedAtWhenTheyRun) {
  CUdeviceptr pointer = Allocate(4096);
  int count = 0;
  CUdeviceptr pair[2] = {};
  void* parameters[] = {&pointer, &count, pair};
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  kernel.func = scale_;
  kernel.kernelParams = parameters;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  pointer = Allocate(4096);
  ASSERT_EQ(cuGraphExecKernelNodeSetParams(executable, node, &kernel), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
}

TEST_F(Launches, NodesOfAnyKindAreAddedByOneFunction) {
  CUdeviceptr pointer = Allocate(4096);
  int count = 0;
  CUdeviceptr pair[2] = {};
  void* arguments[] = {&pointer, &count, pair};
  CUgraphNodeParams kernel = {};
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel.func = scale_;
  kernel.kernel.kernelParams = arguments;
  CUgraphNodeParams fill = {};
  fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fill.memset.dst = pointer;
  fill.memset.elementSize = 1;
  fill.memset.value = 6;
  fill.memset.width = 4;
  fill.memset.height = 1;
  CUgraphNodeParams choice = {};
  choice.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  choice.conditional.size = 2;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode nodes[3] = {};
  ASSERT_EQ(cuGraphAddNode(&nodes[0], graph, nullptr, nullptr, 0, &kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddNode(&nodes[1], graph, nodes, nullptr, 1, &fill), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddNode(&nodes[2], graph, nodes, nullptr, 2, &choice), CUDA_SUCCESS);
  EXPECT_NE(choice.conditional.phGraph_out[0], choice.conditional.phGraph_out[1]);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  int value = 0;
  ASSERT_EQ(cuMemcpyDtoH(&value, pointer, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(value, 0x06060606);
  ASSERT_EQ(cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#if CUDA_VERSION >= 12090
TEST_F(Launches, AChildGraphThatIsMovedKeepsItsNodes) {
  const CUdeviceptr pointer = Allocate(4096);
  CUDA_MEMSET_NODE_PARAMS fill = {pointer, 0, 1, 1, 1, 1};
  CUgraph graph = nullptr;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode inner = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphCreate(&child, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemsetNode(&inner, child, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  CUgraphNodeParams parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
  parameters.graph.graph = child;
  parameters.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  fill.value = 3;
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, inner, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  char value = 0;
  ASSERT_EQ(cuMemcpyDtoH(&value, pointer, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 3);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE) << "it went with its parent";
}
#endif

TEST_F(Launches, CopiesAndFillsOfFreedMemoryFail) {
  const CUdeviceptr live = Allocate(64);
  const CUdeviceptr dead = Allocate(64);
  ASSERT_EQ(cuMemFree(dead), CUDA_SUCCESS);
  char buffer[64] = {};
  EXPECT_EQ(cuMemcpyHtoD(dead, buffer, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyDtoH(buffer, dead, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyDtoD(live, dead, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemsetD8(dead, 0, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemsetD8(live, 0, 65), CUDA_ERROR_ILLEGAL_ADDRESS) << "one byte too many";
  EXPECT_EQ(cuMemsetD8(live, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(Counts().illegal_calls, 5u);
}

TEST_F(Launches, AnUnloadedModuleHasNoKernelsAndNoVariables) {
  CUdeviceptr table = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cuModuleGetGlobal(&table, &bytes, module_, "table"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 40u);
  EXPECT_EQ(cuMemsetD8(table, 1, 40), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetGlobal(&table, &bytes, module_, "nothing"), CUDA_ERROR_NOT_FOUND);
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module_, "nothing"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(table, 1, 40), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Launch(0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launches, SmallResultsAreZeroUnlessACopyWroteThem) {
  const CUdeviceptr pointer = Allocate(4096);
  int value = 5;
  ASSERT_EQ(cuMemcpyHtoD(pointer, &value, sizeof(value)), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(pointer + 8, 7, 8), CUDA_SUCCESS);
  const auto read = [](CUdeviceptr from, auto number) {
    EXPECT_EQ(cuMemcpyDtoH(&number, from, sizeof(number)), CUDA_SUCCESS);
    return number;
  };
  EXPECT_EQ(read(pointer + 8, 0), 0x07070707) << "nothing was launched yet";
  ASSERT_EQ(Launch(pointer), CUDA_SUCCESS);
  EXPECT_EQ(read(pointer, 0), 5) << "written by one copy";
  EXPECT_EQ(read(pointer + 8, 1), 0) << "half of what was written";
  EXPECT_EQ(read(pointer + 9, char{0}), 1) << "a boolean";
  ASSERT_EQ(cuMemcpyDtoD(pointer + 64, pointer, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(read(pointer + 64, 0), 5) << "a copy of it";
}

}  // namespace
}  // namespace simgpu
