// A stream of operations on an Arena, with driver faults and work in flight. After every operation
// all invariants hold, at the end every byte is where it was written and nothing has leaked.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "tests/drivers/delay_driver.h"
#include "tests/drivers/fault_driver.h"
#include "tests/fuzz/input.h"

namespace thimble {
namespace {

constexpr Bytes kGranule = 4 * kKiB;

struct HeldBlock {
  Address address;
  Bytes bytes = 0;
  std::uint8_t pattern = 0;

  char* data() const { return static_cast<char*>(ToPointer(address)); }
  void Fill() const { std::memset(data(), pattern, bytes); }
  // The first byte is right, and every other one is like the one before it.
  bool IsIntact() const {
    return static_cast<std::uint8_t>(data()[0]) == pattern &&
           std::memcmp(data(), data() + 1, bytes - 1) == 0;
  }
};

class ArenaOps {
 public:
  explicit ArenaOps(Input* input)
      : input_(*input), host_(OpenHost()), faults_(*host_), driver_(faults_, NoDelays()) {
    ArenaOptions options;
    options.chunk_bytes = kGranule << input_.Index(2);
    options.limit = options.chunk_bytes * (1 + input_.Index(64));
    const std::uint8_t switches = input_.Byte();
    options.stitch = (switches & 1) == 0;
    options.magazines = (switches & 2) == 0;
    options.preallocate = (switches & 12) == 12;
    arena_ = Arena::Create(options, &driver_).value();
  }

  ~ArenaOps() {
    faults_.Disarm();
    ReleaseStream();
    while (!held_.empty()) FreeAt(held_.size() - 1, StreamId{});
    Bytes released = 0;
    FUZZ_EXPECT(arena_->Trim(0, &released).ok());
    const ArenaStats stats = arena_->GetStats();
    FUZZ_EXPECT(stats.in_use == 0 && stats.live_blocks == 0 && stats.reserved == 0);
    FUZZ_EXPECT(host_->GetMemoryInfo()->free_bytes == host_->properties().total_bytes);
    arena_.reset();
    host_->CheckInvariants();
  }

  void Perform() {
    switch (input_.Byte() % 16) {
      case 0:
        FreeTwice();
        break;
      case 1:
        FreeInside();
        break;
      case 2:
        Trim();
        break;
      case 3:
        Query();
        break;
      case 4:
        ArmFaults();
        break;
      case 5:
        Disarm();
        break;
      case 6:
        driver_.HoldStream(kHeldStream);
        stream_is_held_ = true;
        break;
      case 7:
        ReleaseStream();
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        if (!held_.empty()) FreeAt(input_.Index(held_.size()), AnyStream());
        break;
      default:
        Allocate();
    }
    CheckAll();
  }

 private:
  static constexpr StreamId kHeldStream{3};

  static std::unique_ptr<HostDriver> OpenHost() {
    HostOptions options;
    options.total_bytes = 2 * kMiB;
    options.granularity = kGranule;
    return HostDriver::Open(options).value();
  }
  // A wait for a held stream fails at once.
  static DelayOptions NoDelays() {
    DelayOptions options;
    options.calls = {};
    options.fuse_ms = 0;
    return options;
  }

  StreamId AnyStream() { return StreamId{input_.Index(4)}; }

  // Nothing but a lack of memory can go wrong while no fault is armed and no stream is held.
  void ExpectHonest(const absl::Status& status) const {
    if (faulty_ || stream_is_held_) return;
    FUZZ_EXPECT(status.ok() || absl::IsResourceExhausted(status));
  }

  void Allocate() {
    const Bytes bytes = input_.Size(19);
    const Bytes alignment = input_.Index(8) == 0 ? Bytes{1} << input_.Index(22) : 0;
    // On a held stream, memory in flight may be used again at once: no pattern could tell.
    const StreamId stream{stream_is_held_ ? input_.Index(3) : input_.Index(4)};
    const auto address = arena_->Allocate({bytes, alignment, stream, input_.Byte()});
    ExpectHonest(address.status());
    if (!address.ok()) {
      if (absl::IsResourceExhausted(address.status())) {
        FUZZ_EXPECT(arena_->LastOom().kind != OomKind::kNone);
      }
      return;
    }
    FUZZ_EXPECT((*address == Address()) == (bytes == 0));
    if (bytes == 0) return;
    FUZZ_EXPECT(*address % std::max<Bytes>(alignment, 256) == 0);
    held_.push_back({*address, bytes, ++pattern_});
    held_.back().Fill();
  }

  void FreeAt(std::size_t index, StreamId stream) {
    std::swap(held_[index], held_.back());
    const HeldBlock block = held_.back();
    FUZZ_EXPECT(block.IsIntact());
    const absl::Status status = arena_->Free(block.address, stream);
    ExpectHonest(status);
    if (!status.ok()) return;
    held_.pop_back();
    freed_ = block.address;
    if (stream_is_held_ && stream == kHeldStream) in_flight_.push_back(block);
  }

  bool IsHeld(Address address) const {
    return std::any_of(held_.begin(), held_.end(),
                       [&](const HeldBlock& block) { return block.address == address; });
  }

  void FreeTwice() {
    if (!freed_ || IsHeld(freed_)) return;
    FUZZ_EXPECT(!arena_->Free(freed_, AnyStream()).ok());
    FUZZ_EXPECT(!arena_->Query(freed_).ok());
  }

  void FreeInside() {
    const Address base =
        held_.empty() ? Address(input_.Word()) : held_[input_.Index(held_.size())].address;
    const Address address = base + input_.Size(19);
    if (!address || IsHeld(address)) return;
    FUZZ_EXPECT(!arena_->Free(address, AnyStream()).ok());
    FUZZ_EXPECT(!arena_->Query(address).ok());
  }

  void Trim() {
    Bytes released = 0;
    const Bytes before = arena_->GetStats().reserved;
    const absl::Status status = arena_->Trim(input_.Size(19), &released);
    ExpectHonest(status);
    FUZZ_EXPECT(arena_->GetStats().reserved == before - released);
  }

  void Query() {
    if (held_.empty()) return;
    const HeldBlock& block = held_[input_.Index(held_.size())];
    const auto info = arena_->Query(block.address);
    FUZZ_EXPECT(info.ok() && info->bytes >= block.bytes);
    FUZZ_EXPECT(block.IsIntact());
  }

  void ArmFaults() {
    FaultPlan plan;
    plan.first = input_.Index(16);
    plan.every = input_.Index(5);
    if (input_.Bit()) plan.among = {kAllDriverCalls[input_.Index(kDriverCallCount)]};
    if (input_.Bit()) plan.code = absl::StatusCode::kInternal;
    faults_.Arm(plan);
    faulty_ = true;
  }

  void Disarm() {
    faults_.Disarm();
    faulty_ = false;
  }

  void ReleaseStream() {
    for (const HeldBlock& block : in_flight_) FUZZ_EXPECT(block.IsIntact());
    in_flight_.clear();
    driver_.ReleaseStream(kHeldStream);
    stream_is_held_ = false;
  }

  void CheckAll() {
    arena_->CheckInvariants();
    const ArenaStats stats = arena_->GetStats();
    Bytes bytes = 0;
    for (const HeldBlock& block : held_) bytes += block.bytes;
    FUZZ_EXPECT(stats.AddsUp());
    FUZZ_EXPECT(stats.live_blocks == held_.size());
    FUZZ_EXPECT(stats.in_use >= bytes && stats.in_use <= stats.reserved);
    const Bytes taken = host_->properties().total_bytes - host_->GetMemoryInfo()->free_bytes;
    FUZZ_EXPECT(stats.reserved == taken && stats.reserved <= stats.limit);
  }

  Input& input_;
  const std::unique_ptr<HostDriver> host_;
  FaultDriver faults_;
  DelayDriver driver_;
  std::unique_ptr<Arena> arena_;
  std::vector<HeldBlock> held_;
  std::vector<HeldBlock> in_flight_;  // freed on the held stream, which has not passed
  Address freed_;                     // the last one; it may be held again
  std::uint8_t pattern_ = 0;
  bool faulty_ = false;
  bool stream_is_held_ = false;
};

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  thimble::Input input(data, size);
  thimble::ArenaOps ops(&input);
  while (!input.empty()) ops.Perform();
  return 0;
}
