#include "tests/fault/operations.h"

#include <utility>

#include "allocator/arena/growth.h"

namespace thimble {
namespace {

constexpr Bytes kChunk = Scene::kChunk;
constexpr Bytes kMuch = 256 * kChunk;
static_assert(InLargeChunks(kMuch, 0, 2 * kMuch, kChunk) == kMuch, "an operation means them");

ArenaOptions WithLimit(Bytes chunks, bool preallocate = false) {
  ArenaOptions options;
  options.limit = chunks;
  options.preallocate = preallocate;
  return options;
}

auto Allocates(Bytes bytes, StreamId stream = StreamId{}, Bytes alignment = kUnit) {
  return [=](Scene& scene) { return scene.Allocate(bytes, stream, alignment).status(); };
}

auto FreesBlock(std::size_t block, StreamId stream = StreamId{}) {
  return [=](Scene& scene) { return scene.Free(scene.blocks()[block], stream); };
}

absl::Status TrimsAll(Scene& scene) {
  const Bytes before = scene.stats().reserved;
  Bytes released = 0;
  const absl::Status status = scene.arena().Trim(0, &released);
  EXPECT_EQ(scene.stats().reserved + released, before) << "a chunk was given back by half";
  return status;
}

// --- Preparations --------------------------------------------------------------------------------

void Nothing(Scene& /*scene*/) {}

// Chunk-sized blocks; every second one is free.
auto Checkered(std::size_t chunks) {
  return [=](Scene& scene) {
    scene.Fill(chunks, kChunk);
    scene.FreeEverySecond();
  };
}

auto Full(std::size_t chunks) {
  return [=](Scene& scene) { scene.Fill(chunks, kChunk); };
}

// Every second chunk has gone back to the driver.
auto WithHoles(std::size_t chunks) {
  return [=](Scene& scene) {
    Checkered(chunks)(scene);
    ASSERT_TRUE(TrimsAll(scene).ok());
    ASSERT_EQ(scene.stats().vacant, chunks / 2 * kChunk);
  };
}

// A stitched block was there and is gone: its alias is cached.
auto WithIdleAlias(std::size_t chunks, Bytes bytes) {
  return [=](Scene& scene) {
    Checkered(chunks)(scene);
    const auto address = scene.Allocate(bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    ASSERT_TRUE(scene.Free(*address).ok());
    ASSERT_GT(scene.stats().alias_idle, 0u);
  };
}

// The same two blocks again and again, between others that stay.
void RunStep(Scene& scene) {
  std::vector<Address> blocks;
  for (const Bytes chunks : {5, 3}) {
    const auto address = scene.Allocate(chunks * kChunk);
    ASSERT_TRUE(address.ok()) << address.status();
    blocks.push_back(*address);
    scene.arena().WaitForPlans();  // so that all runs are alike
  }
  for (const Address block : blocks) ASSERT_TRUE(scene.Free(block).ok());
}

ArenaOptions WithPlans(Bytes chunks) {
  ArenaOptions options = WithLimit(chunks);
  options.plan = true;
  return options;
}

// After so many steps, a plan is due with the next request.
int StepsUntilDue() {
  Scene scene(WithPlans(32));
  EXPECT_TRUE(scene.Open().ok());
  Checkered(20)(scene);
  int steps = 0;
  while (scene.stats().plans == 0 && steps < 1000) {
    RunStep(scene);
    ++steps;
  }
  return steps - 1;
}

void PlanIsDue(Scene& scene) {
  static const int steps = StepsUntilDue();
  Checkered(20)(scene);
  for (int i = 0; i < steps; ++i) RunStep(scene);
  ASSERT_EQ(scene.stats().plans, 0u);
}

// Every tag is taken by a stream that has freed something.
void ManyStreams(Scene& scene) {
  scene.Fill(1, kChunk);
  for (std::uint64_t stream = 1; stream <= Frontier::kMaxTags; ++stream) {
    const auto address = scene.Allocate(kChunk, StreamId{stream});
    ASSERT_TRUE(address.ok()) << address.status();
    ASSERT_TRUE(scene.Free(*address, StreamId{stream}).ok());
  }
}

// The thread's magazine holds blocks of a stream whose tag another stream has got since.
void MagazineOfForgottenStream(Scene& scene) {
  ManyStreams(scene);
  scene.Fill(8, kUnit, StreamId{1000});
  for (std::size_t i = 1; i <= 8; ++i) {
    ASSERT_TRUE(scene.Free(scene.blocks()[i], StreamId{1000}).ok());
  }
  const auto address = scene.Allocate(kChunk, StreamId{1001});
  ASSERT_TRUE(address.ok()) << address.status();
  ASSERT_TRUE(scene.Free(*address, StreamId{1001}).ok());
  ASSERT_EQ(scene.stats().magazines, 8 * kUnit);
}

// --- Routes --------------------------------------------------------------------------------------

using Stats = const ArenaStats&;

bool AnyRoute(Stats, Stats) { return true; }
bool NewStitch(Stats before, Stats after) {
  return after.stitches == before.stitches + 1 && after.stitch_hits == before.stitch_hits;
}
bool CachedStitch(Stats before, Stats after) { return after.stitch_hits == before.stitch_hits + 1; }
bool NoStitchNoGrowth(Stats before, Stats after) {
  return after.stitches == before.stitches && after.reserved == before.reserved;
}
bool GrowthOnly(Stats before, Stats after) {
  return after.reserved > before.reserved && after.stitches == before.stitches;
}
bool GrowthAndStitch(Stats before, Stats after) {
  return after.reserved > before.reserved && after.stitches == before.stitches + 1;
}
bool RefilledHoles(Stats before, Stats after) { return after.vacant < before.vacant; }
bool GaveBack(Stats before, Stats after) { return after.reserved < before.reserved; }
bool DroppedAlias(Stats before, Stats after) {
  return GaveBack(before, after) && before.alias_idle > 0 && after.alias_idle == 0;
}
bool EmptiedMagazines(Stats before, Stats after) {
  return before.magazines > 0 && after.magazines == 0;
}
bool FollowsPlan(Stats before, Stats after) {
  return after.plans == before.plans + 1 && after.plan_hits == 1 &&
         after.reserved < before.reserved;
}
bool RanOut(Stats before, Stats after) { return after.out_of_memory == before.out_of_memory + 1; }

std::vector<Operation> Allocations() {
  std::vector<Operation> all = {
      {"AllocateBestFit", WithLimit(16), Checkered(8), Allocates(kChunk / 2), NoStitchNoGrowth, 0},
      {"AllocateFromMagazine", WithLimit(16),
       [](Scene& scene) {
         scene.Fill(4, kUnit);
         scene.FreeEverySecond();
       },
       Allocates(kUnit), NoStitchNoGrowth, 0},
      {"AllocateCachedStitch", WithLimit(16), WithIdleAlias(16, 4 * kChunk), Allocates(4 * kChunk),
       CachedStitch, 0},
      {"AllocateNewStitch", WithLimit(16), Checkered(16), Allocates(4 * kChunk), NewStitch, 5},
      {"AllocateNewStitchAligned", WithLimit(16), Checkered(16),
       Allocates(3 * kChunk, StreamId{}, kChunk), NewStitch, 4},
      {"AllocateExactGrowth", WithLimit(16), Nothing, Allocates(kChunk + kUnit), GrowthOnly, 5},
      {"AllocateSlackGrowth", WithLimit(16), Full(4), Allocates(4 * kChunk), GrowthOnly, 9},
      {"AllocateLargeChunks", WithLimit(512), Nothing, Allocates(kMuch), GrowthOnly, 65},
      {"AllocateSmallRefill", WithLimit(16), Nothing, Allocates(kUnit), GrowthOnly, 3},
      {"AllocateGrowthAndStitch", WithLimit(32), Checkered(8), Allocates(6 * kChunk),
       GrowthAndStitch, 12},
      {"AllocateRefillsHoles", WithLimit(32), WithHoles(8), Allocates(4 * kChunk), RefilledHoles,
       17},
      {"AllocateRefillsHolesAndGrows", WithLimit(32), WithHoles(8), Allocates(6 * kChunk),
       RefilledHoles, 24},
      {"AllocateActivatesPlan", WithPlans(32), PlanIsDue, Allocates(5 * kChunk), FollowsPlan, 20},
      {"AllocateWhatAnotherStreamFreed", WithLimit(8),
       [](Scene& scene) {
         scene.Fill(8, kChunk, StreamId{1});
         for (std::size_t i = 2; i < 6; ++i) {
           ASSERT_TRUE(scene.Free(scene.blocks()[i], StreamId{1}).ok());
         }
       },
       Allocates(4 * kChunk, StreamId{2}), NoStitchNoGrowth, 2},
      {"AllocateOnOneStreamTooMany", WithLimit(16), ManyStreams, Allocates(kChunk, StreamId{999}),
       AnyRoute, 2},
      {"AllocateMoreThanThereIs", WithLimit(8), Full(8), Allocates(2 * kChunk), RanOut, 1,
       absl::StatusCode::kResourceExhausted},
  };
  // Every rung: magazines, streams, aliases, and waiting for frees that never come.
  Operation ladder = {"AllocateClimbsTheWholeLadder",
                      WithLimit(16),
                      [](Scene& scene) {
                        WithIdleAlias(16, 4 * kChunk)(scene);
                        const auto other = scene.Allocate(kChunk / 2, StreamId{2});
                        ASSERT_TRUE(other.ok());
                        ASSERT_TRUE(scene.Free(*other, StreamId{2}).ok());
                      },
                      Allocates(12 * kChunk),
                      RanOut,
                      7,
                      absl::StatusCode::kResourceExhausted};
  ladder.options.retry = std::chrono::milliseconds(1);
  all.push_back(ladder);
  return all;
}

std::vector<Operation> OtherOperations() {
  Operation create = {"CreateGrowing", WithLimit(16),
                      nullptr,         [](Scene& scene) { return scene.Open(); },
                      nullptr,         2};
  create.opens = true;
  Operation preallocate = create;
  preallocate.name = "CreatePreallocated";
  preallocate.options = WithLimit(10, /*preallocate=*/true);
  preallocate.least_calls = 23;
  Operation destroy = {"Destroy", WithLimit(16), WithIdleAlias(8, 3 * kChunk),
                       [](Scene& scene) {
                         scene.Close();
                         return absl::OkStatus();
                       },
                       nullptr,
                       // 8 chunks unmapped and destroyed, 3 mappings, 2 reservations
                       21};
  destroy.closes = true;
  return {
      create,
      preallocate,
      {"Free", WithLimit(16), Full(8), FreesBlock(3), NoStitchNoGrowth, 0},
      {"FreeStitched", WithLimit(16),
       [](Scene& scene) {
         Checkered(16)(scene);
         scene.Fill(1, 4 * kChunk);
       },
       FreesBlock(16), NoStitchNoGrowth, 0},
      {"FreeOnOneStreamTooMany", WithLimit(16), ManyStreams, FreesBlock(0, StreamId{999}), AnyRoute,
       2},
      {"TrimFreeChunks", WithLimit(16), Checkered(16), TrimsAll, GaveBack, 16},
      {"TrimDropsIdleAliases", WithLimit(16), WithIdleAlias(8, 3 * kChunk), TrimsAll, DroppedAlias,
       11},
      {"TrimWaitsForEveryStream", WithLimit(16),
       [](Scene& scene) {
         scene.Fill(8, kChunk);
         for (std::size_t i = 0; i < 4; ++i) {
           ASSERT_TRUE(scene.Free(scene.blocks()[i], StreamId{i}).ok());
         }
       },
       TrimsAll, GaveBack, 16},
      {"TrimEmptiesMagazinesOfForgottenStreams", WithLimit(16), MagazineOfForgottenStream, TrimsAll,
       EmptiedMagazines, 4},
      destroy,
  };
}

}  // namespace

const std::vector<Operation>& AllOperations() {
  static const auto* const all = [] {
    auto* operations = new std::vector<Operation>(Allocations());
    for (Operation& operation : OtherOperations()) operations->push_back(std::move(operation));
    return operations;
  }();
  return *all;
}

}  // namespace thimble
