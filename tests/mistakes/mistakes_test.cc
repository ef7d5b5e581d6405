// Each program is run twice, on an arena over the simulated GPU, whose work takes milliseconds: as
// it should be, and with one mistake, in the arena's use of streams or in the program's. The race
// detector finds nothing in the first run, and the mistake in the second.
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/cuda_driver.h"
#include "gmock/gmock.h"
#include "tests/conformance/simulated_cuda.h"
#include "tests/mistakes/mistaken_driver.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Bytes kChunk = 64 * kKiB;
constexpr Bytes kBlock = 4 * kChunk;

std::string FileNamed(const char* name) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  return absl::StrCat(folder == nullptr ? "/tmp" : folder, "/", name);
}

// A GPU on which each kernel and copy takes 2 ms, and calls of the driver nothing.
std::string SlowGpu() {
  const std::string path = FileNamed("slow_gpu");
  std::ofstream file(path);
  for (const char* const rate :
       {"fp64_tflops", "fp32_tflops", "tf32_tflops", "half_tflops", "byte_tflops", "memory_gbps",
        "bus_in_gbps", "bus_out_gbps", "pageable_gbps", "simd_efficiency", "tensor_efficiency",
        "memory_efficiency"}) {
    file << rate << " 1\n";
  }
  for (const char* const latency : {"bus_in_us", "bus_out_us", "launch_us"}) {
    file << latency << " 2000\n";
  }
  for (const char* const price :
       {"nvlink_gbps", "reserve_us", "create_us", "map_us", "set_access_us", "unmap_us", "alloc_us",
        "alloc_us_per_mib", "free_us"}) {
    file << price << " 0\n";
  }
  return path;
}

// Tells the simulated GPU of blocks, as NvtxListener tells tools.
class Reporter final : public EventSink {
 public:
  explicit Reporter(SimulatedCuda& cuda)
      : begin_(cuda.Symbol<decltype(simgpu_block_begin)>("simgpu_block_begin")),
        end_(cuda.Symbol<decltype(simgpu_block_end)>("simgpu_block_end")) {
    enabled_ = true;
  }
  void Append(const Event& event) override {
    if (event.kind == EventKind::kAllocate) begin_(event.address, event.bytes);
    if (event.kind == EventKind::kFree) end_(event.address);
  }

 private:
  decltype(simgpu_block_begin)* const begin_;
  decltype(simgpu_block_end)* const end_;
};

// One run of a program.
class Machine {
 public:
  Machine(Mistake mistake, const ArenaOptions& asked) : illegal_(FileNamed("illegal")) {
    std::remove(illegal_.c_str());
    cuda_.Symbol<decltype(simgpu_restart)>("simgpu_restart")(
        absl::StrCat("memory:64MiB,granularity:64KiB,clock:", SlowGpu(), ",illegal:", illegal_)
            .c_str());
    CudaOptions cuda;
    cuda.library = kSimulatedLibcuda;
    cuda_driver_ = *CudaDriver::Open(cuda);
    for (StreamId* const stream : {&first, &second, &idle_}) *stream = cuda_.NewStream();
    driver_ = std::make_unique<MistakenDriver>(
        *cuda_driver_, mistake, idle_,
        [this](Address device, void* host, Bytes bytes, CopyDirection direction) {
          return BeginCopy(device, host, bytes, direction);
        });
    reporter_ = std::make_unique<Reporter>(cuda_);
    ArenaOptions options = asked;
    options.chunk_bytes = kChunk;
    arena_ = *Arena::Create(options, driver_.get(), reporter_.get());
  }

  Arena& arena() { return *arena_; }
  Address Allocate(Bytes bytes, StreamId stream) {
    const auto address = arena_->Allocate({bytes, 0, stream, 0});
    EXPECT_TRUE(address.ok()) << address.status();
    return address.value_or(Address());
  }
  void Free(Address block, StreamId stream) { EXPECT_TRUE(arena_->Free(block, stream).ok()); }
  // A block of an op that ran before, and that may leave the device.
  Address Made(StreamId stream) {
    const Address block = Allocate(kBlock, stream);
    Use(block, stream);
    EXPECT_TRUE(arena_->Unpin({}, {block}, stream, false).ok());
    return block;
  }
  void Pin(Address block) { EXPECT_TRUE(arena_->Pin({block}, OpName()).ok()); }
  void Unpin(Address block, StreamId stream) {
    EXPECT_TRUE(arena_->Unpin({block}, {}, stream, false).ok());
  }

  // A kernel that uses the block.
  void Use(Address block, StreamId stream) {
    InContext([&] {
      const auto fill = cuda_.Symbol<decltype(cuMemsetD8Async)>("cuMemsetD8Async");
      EXPECT_EQ(fill(block.value(), 1, 1, Handle(stream)), CUDA_SUCCESS);
    });
  }
  // Later work of `stream` begins after all of `before` so far.
  void Order(StreamId stream, StreamId before) {
    InContext([&] {
      CUevent event = nullptr;
      cuda_.Symbol<decltype(cuEventCreate)>("cuEventCreate")(&event, 0);
      cuda_.Symbol<decltype(cuEventRecord)>("cuEventRecord")(event, Handle(before));
      cuda_.Symbol<decltype(cuStreamWaitEvent)>("cuStreamWaitEvent")(Handle(stream), event, 0);
    });
  }

  // What was found by the end of the program, which waits for all of its work.
  std::string Findings() {
    InContext([&] { cuda_.Symbol<decltype(cuCtxSynchronize)>("cuCtxSynchronize")(); });
    return FindingsAtOnce();
  }
  // The same, but the program does not wait.
  std::string FindingsAtOnce() {
    arena_.reset();
    std::ifstream file(illegal_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  StreamId first{};
  StreamId second{};

 private:
  static CUstream Handle(StreamId stream) {
    return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(stream));
  }
  void InContext(const std::function<void()>& body) {
    CUcontext context = nullptr;
    cuda_.Symbol<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    cuda_.Symbol<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context);
    body();
    cuda_.Symbol<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&context);
    cuda_.Symbol<decltype(cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease_v2")(0);
  }
  absl::Status BeginCopy(Address device, void* host, Bytes bytes, CopyDirection direction) {
    InContext([&] {
      if (direction == CopyDirection::kToHost) {
        cuda_.Symbol<decltype(cuMemcpyDtoHAsync_v2)>("cuMemcpyDtoHAsync_v2")(host, device.value(),
                                                                             bytes, Handle(idle_));
      } else {
        cuda_.Symbol<decltype(cuMemcpyHtoDAsync_v2)>("cuMemcpyHtoDAsync_v2")(device.value(), host,
                                                                             bytes, Handle(idle_));
      }
    });
    return absl::OkStatus();
  }

  const std::string illegal_;
  SimulatedCuda cuda_;
  std::unique_ptr<CudaDriver> cuda_driver_;
  StreamId idle_{};
  std::unique_ptr<MistakenDriver> driver_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Arena> arena_;
};

// Memory that work of two streams used goes back to the driver.
void GiveBack(Machine& machine, bool /*mistaken*/) {
  const Address one = machine.Allocate(kBlock, machine.first);
  const Address other = machine.Allocate(kBlock, machine.second);
  machine.Use(one, machine.first);
  machine.Free(one, machine.first);
  machine.Use(other, machine.second);
  machine.Free(other, machine.second);
  Bytes released = 0;
  EXPECT_TRUE(machine.arena().Trim(0, &released).ok());
  EXPECT_EQ(released, 2 * kBlock);
}

// The same, after an earlier point of the stream was recorded and passed.
void GiveBackAgain(Machine& machine, bool mistaken) {
  GiveBack(machine, mistaken);
  GiveBack(machine, mistaken);
}

// A block that work on the first stream uses is freed there; the second stream gets its memory.
void HandOn(Machine& machine, bool /*mistaken*/) {
  const Address block = machine.Allocate(kBlock, machine.first);
  machine.Use(block, machine.first);
  machine.Free(block, machine.first);
  const Address next = machine.Allocate(kBlock, machine.second);
  machine.Use(next, machine.second);
}

// The same with all small blocks that there are, which threads keep.
void HandSmallOn(Machine& machine, bool /*mistaken*/) {
  std::vector<Address> blocks;
  while (true) {
    const auto block = machine.arena().Allocate({kUnit, 0, machine.first, 0});
    if (!block.ok()) break;
    blocks.push_back(*block);
  }
  ASSERT_GT(blocks.size(), 100u);
  machine.Use(blocks.back(), machine.first);
  for (const Address block : blocks) machine.Free(block, machine.first);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    machine.Use(machine.Allocate(kUnit, machine.second), machine.second);
  }
}

// A stitched block that two streams use; the one that frees it waits for the other.
void FreeStitched(Machine& machine, bool mistaken) {
  std::vector<Address> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(machine.Allocate(kChunk, machine.first));
  machine.Free(pieces[0], machine.first);
  machine.Free(pieces[2], machine.first);
  const Address stitched = machine.Allocate(2 * kChunk, machine.first);
  EXPECT_EQ(machine.arena().Query(stitched)->seams, 1u);
  machine.Use(stitched, machine.first);
  machine.Use(stitched, machine.second);
  if (!mistaken) machine.Order(machine.first, machine.second);
  machine.Free(stitched, machine.first);
  machine.Use(machine.Allocate(2 * kChunk, machine.first), machine.first);
}

// A block is freed on the stream that used it.
void FreeWhereUsed(Machine& machine, bool mistaken) {
  const Address block = machine.Allocate(kBlock, machine.first);
  machine.Use(block, machine.first);
  machine.Free(block, mistaken ? machine.second : machine.first);
  machine.Use(machine.Allocate(kBlock, machine.second), machine.second);
}

// More blocks than fit are used in turn; each op pins what it uses.
void Swap(Machine& machine, bool leave_pin_out, bool name_wrong_stream) {
  std::vector<Address> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(machine.Made(machine.first));
  for (int round = 0; round < 2; ++round) {
    for (const Address block : blocks) {
      machine.Pin(block);
      if (leave_pin_out) machine.Unpin(block, machine.first);
      machine.Use(block, machine.second);
      if (!leave_pin_out) {
        machine.Unpin(block, name_wrong_stream ? machine.first : machine.second);
      }
    }
  }
  EXPECT_GT(machine.arena().GetStats().swap_out_bytes, 0u);
  EXPECT_GT(machine.arena().GetStats().swap_in_bytes, 0u);
}
void SwapPinned(Machine& machine, bool mistaken) { Swap(machine, mistaken, false); }
void SwapOnNamedStream(Machine& machine, bool mistaken) { Swap(machine, false, mistaken); }

constexpr char kUnmapped[] = "cuMemUnmap: ";
constexpr char kHandedOn[] = "and its memory handed on";
constexpr char kHostMemory[] = "of host memory while ";

struct Case {
  const char* name;
  void (*program)(Machine& machine, bool mistaken);
  Mistake mistake;  // kNone: the program's own
  Bytes limit;
  const char* found;
  bool swaps = false;
};

const Case kCases[] = {
    {"NoWaitBeforeUnmap", GiveBack, Mistake::kNoWait, 2 * kBlock, kUnmapped},
    {"WaitsForOneStreamOnly", GiveBack, Mistake::kOnlyFirstWait, 2 * kBlock, kUnmapped},
    {"FrontierOnePointTooEarly", GiveBackAgain, Mistake::kFrontierTooEarly, 2 * kBlock, kUnmapped},
    {"FrontierOfAnotherStream", GiveBack, Mistake::kAnotherStream, 2 * kBlock, kUnmapped},
    {"HandedOnWithoutAsking", HandOn, Mistake::kEverythingPassed, kBlock, kHandedOn},
    {"SmallOnesHandedOnWithoutAsking", HandSmallOn, Mistake::kEverythingPassed, kChunk, kHandedOn},
    {"StitchedBlockOfTwoStreams", FreeStitched, Mistake::kNone, kBlock, kHandedOn},
    {"FreedOnTheWrongStream", FreeWhereUsed, Mistake::kNone, kBlock, kHandedOn},
    {"APinLeftOut", SwapPinned, Mistake::kNone, 2 * kBlock, kUnmapped, true},
    {"UnpinNamesTheWrongStream", SwapOnNamedStream, Mistake::kNone, 2 * kBlock, kUnmapped, true},
    {"CopyOutNotAwaited", SwapPinned, Mistake::kNoWaitForCopyOut, 2 * kBlock, kUnmapped, true},
    {"CopyInNotAwaited", SwapPinned, Mistake::kNoWaitForCopyIn, 2 * kBlock, kHostMemory, true},
};

class Mistakes : public testing::TestWithParam<Case> {
 protected:
  static std::string Run(const Case& one, bool mistaken) {
    ArenaOptions options;
    options.limit = one.limit;
    if (one.swaps) options.swap = SwapMode::kAuto;
    Machine machine(mistaken ? one.mistake : Mistake::kNone, options);
    one.program(machine, mistaken && one.mistake == Mistake::kNone);
    return machine.Findings();
  }
};

INSTANTIATE_TEST_SUITE_P(All, Mistakes, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(Mistakes, AreFound) {
  EXPECT_THAT(Run(GetParam(), /*mistaken=*/false), IsEmpty());
  EXPECT_THAT(Run(GetParam(), /*mistaken=*/true), HasSubstr(GetParam().found));
}

TEST(Destruction, WaitsForWorkWithFreedBlocks) {
  Machine machine(Mistake::kNone, {});
  for (const StreamId stream : {machine.first, machine.second}) {
    const Address block = machine.Allocate(kBlock, stream);
    machine.Use(block, stream);
    machine.Free(block, stream);
  }
  EXPECT_THAT(machine.FindingsAtOnce(), IsEmpty());
}

}  // namespace
}  // namespace thimble
