// Replays logs of arenas that ran out of memory with other options. If the replay fits, the same
// program fits with those options.
#include "allocator/offline/logs/replay.h"

#include <cstdio>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/whole_file.h"
#include "allocator/observe/beside_log.h"
#include "allocator/offline/logs/log_reader.h"
#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kLimit = 64 * kChunk;

// Requests of one stream. After one that fails, nothing happens but that all is freed at the end.
class Program {
 public:
  explicit Program(Arena* arena) : arena_(*arena) {}
  ~Program() {
    for (const Address block : held_) EXPECT_TRUE(arena_.Free(block, kFirst).ok());
  }

  void BeginStep() {
    ++step_;
    arena_.WaitForPlans();
  }
  Address Take(Bytes bytes, std::uint64_t key = 0) {
    if (!fits_) return Address();
    const auto block = arena_.Allocate({bytes, 0, kFirst, key, step_});
    fits_ = block.ok();
    if (fits_) held_.push_back(*block);
    return block.value_or(Address());
  }
  void Give(Address block) {
    if (!fits_) return;
    EXPECT_TRUE(arena_.Free(block, kFirst).ok());
    held_.erase(std::find(held_.begin(), held_.end(), block));
  }
  bool fits() const { return fits_; }

 private:
  Arena& arena_;
  std::vector<Address> held_;
  std::uint64_t step_ = 0;
  bool fits_ = true;
};

// Every second chunk is free, and half of the memory is asked for.
void Scatter(Program* program) {
  std::vector<Address> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(program->Take(kChunk));
  for (std::size_t i = 0; i < blocks.size(); i += 2) program->Give(blocks[i]);
  program->Take(32 * kChunk);
}

// In every step, halves of chunks that stay and that go in turn, then a block as large as those
// that went. At the end a block comes that stays, and only who packs the halves has room for it.
void Interleave(Program* program) {
  constexpr int kSteps = 40;
  constexpr int kHalves = 32;
  for (int step = 0; step < kSteps; ++step) {
    program->BeginStep();
    std::vector<Address> stay;
    std::vector<Address> go;
    for (std::uint64_t i = 0; i < kHalves; ++i) {
      stay.push_back(program->Take(kChunk / 2, 1 + i));
      go.push_back(program->Take(kChunk / 2, 101 + i));
    }
    for (const Address block : go) program->Give(block);
    const Address large = program->Take(kHalves * kChunk / 2, 500);
    if (step == kSteps - 2) program->Take(24 * kChunk, /*key=*/1000);
    for (const Address block : stay) program->Give(block);
    program->Give(large);
  }
}

class ReplayTest : public ArenaTest {
 protected:
  using Requests = void (*)(Program*);

  // Bytes of the request that failed; 0 if all of it fits.
  Bytes Run(Requests requests, const ArenaOptions& options, std::uint64_t most_events = 0) {
    std::remove(PathBeside(log_, kOomFile).c_str());
    Make(kLimit, options);
    EXPECT_TRUE(arena_->StartLog(log_, most_events).ok());
    Bytes failed = 0;
    {
      Program program(arena_.get());
      requests(&program);
      if (!program.fits()) failed = arena_->LastOom().requested;
    }
    EXPECT_TRUE(arena_->StopLog().ok());
    const std::string json = ReadWholeFile(PathBeside(log_, kOomFile)).value_or("");
    EXPECT_EQ(json.empty(), failed == 0);
    EXPECT_TRUE(failed == 0 || absl::StrContains(json, absl::StrCat("\"requested\":", failed, ",")))
        << json;
    arena_.reset();
    return failed;
  }

  ReplayOutcome Replay(ArenaOptions options) {
    options.limit = kLimit;
    options.chunk_bytes = kChunk;
    Device device(kLimit);
    const auto outcome = ReplayLog(ReadEventLog(log_).value(), options, device.driver());
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.value_or(ReplayOutcome());
  }

  const std::string log_ = testing::TempDir() + "/log";
};

ArenaOptions With(bool stitch, bool plan) {
  ArenaOptions options;
  options.stitch = stitch;
  options.plan = plan;
  return options;
}

TEST_F(ReplayTest, StitchingFitsInTheReplayAndInTheProgram) {
  EXPECT_EQ(Run(Scatter, With(/*stitch=*/false, /*plan=*/false)), 32 * kChunk);
  const ReplayOutcome same = Replay(With(false, false));
  EXPECT_TRUE(same.reached);
  EXPECT_FALSE(same.fits);
  EXPECT_EQ(same.failed_bytes, 32 * kChunk);
  EXPECT_EQ(same.requests, 64u);
  EXPECT_TRUE(Replay(With(/*stitch=*/true, false)).fits);
  EXPECT_EQ(Run(Scatter, With(/*stitch=*/true, false)), 0u);
}

TEST_F(ReplayTest, APlanFitsInTheReplayAndInTheProgram) {
  EXPECT_EQ(Run(Interleave, With(/*stitch=*/true, /*plan=*/false)), 24 * kChunk);
  EXPECT_FALSE(Replay(With(true, false)).fits);
  EXPECT_TRUE(Replay(With(true, /*plan=*/true)).fits);
  EXPECT_EQ(Run(Interleave, With(true, /*plan=*/true)), 0u);
}

TEST_F(ReplayTest, ALogThatEndedBeforeTheFailureDoesNotNameIt) {
  EXPECT_EQ(Run(Scatter, With(/*stitch=*/false, /*plan=*/false), /*most_events=*/50), 32 * kChunk);
  EXPECT_EQ(Replay(With(true, false)).failed_bytes, 0u);
}

TEST_F(ReplayTest, NothingIsWrittenBesideALogThatIsNotAFile) {
  Make(kLimit);
  ASSERT_TRUE(arena_->StartLog("/dev/null", 0).ok());
  EXPECT_FALSE(TryAllocate(kLimit + kChunk).ok());
  Free(Allocate(kChunk));
  EXPECT_FALSE(ReadWholeFile(PathBeside("/dev/null", kOomFile)).ok());
  EXPECT_FALSE(ReadWholeFile(PathBeside("/dev/null", kNowFile)).ok());
}

TEST_F(ReplayTest, TheStatisticsAreBesideTheLog) {
  Make(kLimit);
  ASSERT_TRUE(arena_->StartLog(log_, 0).ok());
  Allocate(3 * kChunk);
  EXPECT_THAT(ReadWholeFile(PathBeside(log_, kNowFile)).value(),
              HasSubstr(absl::StrCat("{\"in_use\":", 3 * kChunk, ",")));
}

TEST_F(ReplayTest, WithoutAFailureAllOfTheLogIsReplayed) {
  EXPECT_EQ(Run(Scatter, With(true, false)), 0u);
  const ReplayOutcome outcome = Replay(With(true, false));
  EXPECT_TRUE(outcome.fits);
  EXPECT_EQ(outcome.requests, 65u);
  EXPECT_EQ(outcome.peak_in_use, kLimit);
}

}  // namespace
}  // namespace thimble
