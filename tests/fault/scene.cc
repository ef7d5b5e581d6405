#include "tests/fault/scene.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

ArenaOptions InBytes(ArenaOptions options) {
  options.chunk_bytes = Scene::kChunk;
  options.limit *= Scene::kChunk;
  return options;
}

std::unique_ptr<HostDriver> OpenHost(Bytes bytes) {
  HostOptions options;
  options.total_bytes = bytes;
  options.granularity = kPage;
  auto host = HostDriver::Open(options);
  EXPECT_TRUE(host.ok()) << host.status();
  return *std::move(host);
}

}  // namespace

Scene::Scene(ArenaOptions options)
    : options_(InBytes(options)),
      host_(OpenHost(2 * options_.limit)),
      inner_(*host_),
      outer_(static_cast<Driver&>(inner_)),
      oracle_(host_.get()) {}

absl::Status Scene::Open() {
  THIMBLE_ASSIGN_OR_RETURN(arena_, Arena::Create(options_, &outer_));
  return absl::OkStatus();
}

void Scene::Heal() {
  outer_.Disarm();
  inner_.Disarm();
}

absl::StatusOr<Address> Scene::Allocate(Bytes bytes, StreamId stream, Bytes alignment) {
  THIMBLE_ASSIGN_OR_RETURN(const Address address,
                           arena_->Allocate({bytes, alignment, stream, /*key=*/0}));
  const Bytes rounded = RoundUp(bytes, kUnit);
  const bool is_stitched = arena_->Query(address)->seams > 0;
  const Bytes counted = is_stitched ? rounded + alignment - kUnit : rounded;
  EXPECT_TRUE(oracle_.Add(address, {rounded, counted, stream, 0, ++serial_}));
  return address;
}

absl::Status Scene::Free(Address address, StreamId stream) {
  const Held held = oracle_.at(address);
  EXPECT_TRUE(oracle_.Remove(address));
  absl::Status status = arena_->Free(address, stream);
  if (!status.ok()) {
    EXPECT_TRUE(oracle_.Adopt(address, held));
  }
  return status;
}

void Scene::Fill(std::size_t count, Bytes bytes, StreamId stream) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = Allocate(bytes, stream);
    ASSERT_TRUE(address.ok()) << address.status();
    blocks_.push_back(*address);
  }
}

void Scene::FreeEverySecond(StreamId stream) {
  for (std::size_t i = 1; i < blocks_.size(); i += 2) ASSERT_TRUE(Free(blocks_[i], stream).ok());
}

testing::AssertionResult Scene::IsSound() {
  arena_->CheckInvariants();
  host_->CheckInvariants();
  const ArenaStats now = stats();
  if (!now.AddsUp()) return testing::AssertionFailure() << "the statistics do not add up";
  if (now.in_use != oracle_.in_use()) {
    return testing::AssertionFailure() << "in use: " << now.in_use << ", not " << oracle_.in_use();
  }
  if (now.live_blocks != oracle_.size()) {
    return testing::AssertionFailure() << "blocks: " << now.live_blocks;
  }
  if (const auto intact = oracle_.CheckAllContents(); !intact) return intact;
  return oracle_.CheckPhysical();
}

testing::AssertionResult Scene::Works() {
  workloads::Random random(serial_ + 1);
  // Frees half of the blocks first, because a full arena can do little.
  for (std::size_t left = oracle_.size() / 2; oracle_.size() > left;) {
    const Address address = oracle_.Nth(random.Index(oracle_.size()));
    if (const absl::Status status = Free(address); !status.ok()) {
      return testing::AssertionFailure() << status;
    }
  }
  const Bytes room = options_.limit - oracle_.in_use();
  std::vector<Address> mine;
  for (int i = 0; i < 100; ++i) {
    absl::Status status;
    if (i % 4 < 3) {
      const auto address = Allocate(random.LogUniform(1, room / 8), StreamId{random.Index(2)});
      status = address.status();
      if (address.ok()) mine.push_back(*address);
    } else {
      for (const Address address : std::exchange(mine, {})) {
        if (status.ok()) status = Free(address, StreamId{random.Index(2)});
      }
    }
    if (!status.ok()) return testing::AssertionFailure() << "operation " << i << ": " << status;
  }
  return IsSound();
}

testing::AssertionResult Scene::TrimsToNothing() {
  absl::Status status;
  while (status.ok() && oracle_.size() > 0) status = Free(oracle_.Nth(0));
  Bytes released = 0;
  if (status.ok()) status = arena_->Trim(0, &released);
  if (!status.ok()) return testing::AssertionFailure() << status;
  if (stats().reserved != 0 || UsedOfDevice() != 0) {
    return testing::AssertionFailure() << "reserved: " << stats().reserved << ", taken from the "
                                       << "device: " << UsedOfDevice();
  }
  return IsSound();
}

Bytes Scene::UsedOfDevice() {
  const MemoryInfo info = *host_->GetMemoryInfo();
  return info.total_bytes - info.free_bytes;
}

testing::AssertionResult Scene::GaveAllBack() {
  if (UsedOfDevice() != 0) {
    return testing::AssertionFailure() << UsedOfDevice() << " bytes are lost";
  }
  if (host_->areas() != 0) return testing::AssertionFailure() << "addresses are still reserved";
  return testing::AssertionSuccess();
}

ProcessResources CountResources() {
  ProcessResources resources;
  const std::filesystem::directory_iterator files("/proc/self/fd");
  resources.files = static_cast<std::size_t>(std::distance(begin(files), end(files)));
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:thimble") != std::string::npos) ++resources.mappings;
  }
  return resources;
}

}  // namespace thimble
