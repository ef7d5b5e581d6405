// Arena, streams: memory is reused at once on the stream that freed it, and elsewhere only when
// that stream has passed the free.
#include <atomic>
#include <thread>

#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

struct Kind {
  const char* name;
  Bytes bytes;
  bool magazines;
};

class ArenaStream : public ArenaTest, public testing::WithParamInterface<Kind> {
 protected:
  void MakeWith(Bytes limit) {
    ArenaOptions options;
    options.magazines = GetParam().magazines;
    Make(limit, options);
  }
  Bytes bytes() const { return GetParam().bytes; }
  // The physical byte behind an address.
  Bytes Physical(Address address) const { return device_.host().Translate(address).value(); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, ArenaStream,
                         testing::Values(Kind{"Small", kUnit, false}, Kind{"Cached", kUnit, true},
                                         Kind{"Large", 3 * kChunk, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ArenaStream, ReusesAtOnceOnTheSameStream) {
  MakeWith(8 * kChunk);
  device_.streams().HoldStream(kFirst);
  const Address address = Allocate(bytes(), kFirst);
  const Bytes physical = Physical(address);
  const std::uint64_t calls = device_.calls();
  Free(address, kFirst);
  EXPECT_EQ(Physical(Allocate(bytes(), kFirst)), physical);
  EXPECT_EQ(device_.calls(), calls) << "the driver is not asked";
}

TEST_P(ArenaStream, AnotherStreamGetsOtherMemoryUntilTheFreeIsPassed) {
  MakeWith(64 * kChunk);
  const Address address = Allocate(bytes(), kFirst);
  const Bytes physical = Physical(address);
  device_.streams().HoldStream(kFirst);
  Free(address, kFirst);
  std::vector<Address> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(Allocate(bytes(), kSecond));
    const Bytes begin = Physical(others.back());
    EXPECT_TRUE(physical >= begin + bytes() || physical + bytes() <= begin) << i;
  }
  device_.streams().ReleaseStream(kFirst);
}

TEST_P(ArenaStream, WhenTheStreamHasPassedAllStreamsMayUseItsMemory) {
  MakeWith(8 * kChunk);
  std::vector<Address> blocks;  // all there is
  while (true) {
    const auto address = arena_->Allocate({bytes(), 0, kFirst, 0});
    if (!address.ok()) break;
    blocks.push_back(*address);
  }
  for (const Address address : blocks) Free(address, kFirst);
  for (std::size_t i = 0; i < blocks.size(); ++i) Allocate(bytes(), kSecond);
}

TEST_P(ArenaStream, ARequestWaitsForTheStreamThatHoldsTheMemory) {
  MakeWith(3 * kChunk);
  const std::vector<Address> blocks = Fill(3 * kChunk / bytes(), bytes(), kFirst);
  device_.streams().HoldStream(kFirst);
  for (const Address address : blocks) Free(address, kFirst);
  std::atomic<bool> released{false};
  std::thread gpu([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    released = true;
    device_.streams().ReleaseStream(kFirst);
  });
  const auto address = arena_->Allocate({2 * kChunk, 0, kSecond, 0});
  EXPECT_TRUE(released) << "the memory was given away while the stream still used it";
  gpu.join();
  EXPECT_TRUE(address.ok()) << address.status();
}

// New memory belongs to the stream it was taken for, also where it lies next to what another stream
// has just freed.
TEST_P(ArenaStream, NewMemoryDoesNotWaitForTheStreamNextToIt) {
  MakeWith(64 * kChunk);
  const Address address = Allocate(4 * kChunk, kFirst);
  device_.streams().HoldStream(kFirst);
  Free(address, kFirst);
  const std::uint64_t waits = device_.calls(DriverCall::kWait);
  for (int i = 0; i < 3; ++i) {
    Allocate(bytes(), kSecond);
    Allocate(6 * kChunk, kSecond);
  }
  EXPECT_EQ(device_.calls(DriverCall::kWait), waits);
  device_.streams().ReleaseStream(kFirst);
}

TEST_P(ArenaStream, MoreStreamsThanTagsStillWork) {
  MakeWith(2048 * kChunk);
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    const Address address = Allocate(bytes(), StreamId{stream});
    if (stream % 3 != 0) Free(address, StreamId{stream});
  }
  EXPECT_EQ(stats().live_blocks, 334u);
}

// The number of a stream that was destroyed may name another one, which is not behind the old.
TEST_P(ArenaStream, AForgottenStreamHasPassedAndItsNumberIsNew) {
  MakeWith(8 * kChunk);
  const Address address = Allocate(bytes(), kFirst);
  device_.streams().HoldStream(kFirst);
  Free(address, kFirst);
  std::atomic<bool> released{false};
  std::thread gpu([&] {
    while (device_.calls(DriverCall::kWait) == 0) std::this_thread::yield();
    released = true;
    device_.streams().ReleaseStream(kFirst);
  });
  const absl::Status status = arena_->ForgetStream(kFirst);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(released) << "forgotten while work was pending";
  gpu.join();
  const std::uint64_t points = device_.calls(DriverCall::kRecord);
  EXPECT_TRUE(arena_->ForgetStream(kFirst).ok());
  EXPECT_TRUE(arena_->ForgetStream(kSecond).ok()) << "never seen";
  Trim(0);
  EXPECT_EQ(device_.calls(DriverCall::kRecord), points) << "asks for a stream that is gone";
  EXPECT_EQ(stats().reserved, 0u);
}

TEST(ArenaStreams, NothingIsUnmappedThatAStreamMayStillUse) {
  Device device;
  ArenaOptions options;
  options.limit = 16 * kChunk;
  options.chunk_bytes = kChunk;
  const auto arena = Arena::Create(options, device.driver()).value();
  std::vector<Address> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(arena->Allocate({kChunk, 0, kFirst, 0}).value());
  for (int i = 0; i < 16; i += 2) ASSERT_TRUE(arena->Free(blocks[i], kFirst).ok());
  const Address stitched = arena->Allocate({4 * kChunk, 0, kFirst, 0}).value();
  ASSERT_GT(arena->Query(stitched)->seams, 0u);
  device.streams().HoldStream(kFirst);
  ASSERT_TRUE(arena->Free(stitched, kFirst).ok());

  std::thread gpu([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(device.calls(DriverCall::kUnmap), 0u);
    for (Bytes at = 0; at < 4 * kChunk; at += kGranule) ByteAt(stitched + at) = 1;  // late work
    device.streams().ReleaseStream(kFirst);
  });
  Bytes released = 0;
  EXPECT_TRUE(arena->Trim(0, &released).ok());
  gpu.join();
  EXPECT_EQ(released, 8 * kChunk);
  EXPECT_GT(device.calls(DriverCall::kUnmap), 0u);
}

// The stream's work ends only when the host has freed a block: a host callback, say.
TEST(ArenaStreams, AThreadThatWaitsForAStreamStopsNoOther) {
  Device device;
  ArenaOptions options;
  options.limit = 16 * kChunk;
  options.chunk_bytes = kChunk;
  const auto arena = Arena::Create(options, device.driver()).value();
  const Address first = arena->Allocate({kChunk, 0, kFirst, 0}).value();
  const Address second = arena->Allocate({kChunk, 0, kSecond, 0}).value();
  device.streams().HoldStream(kFirst);
  ASSERT_TRUE(arena->Free(first, kFirst).ok());

  std::thread callback([&] {
    while (device.calls(DriverCall::kWait) == 0) std::this_thread::yield();
    EXPECT_TRUE(arena->Free(second, kSecond).ok());
    device.streams().ReleaseStream(kFirst);
  });
  Bytes released = 0;
  EXPECT_TRUE(arena->Trim(0, &released).ok());
  callback.join();
  EXPECT_GE(released, kChunk);
}

}  // namespace
}  // namespace thimble
