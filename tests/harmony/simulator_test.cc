// The simulator on programs small enough to time by hand.
#include "allocator/offline/harmony/simulator.h"

#include <algorithm>

#include "allocator/offline/harmony/validator.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

Task Forward(Pack pack, int gpu, std::vector<int> microbatches) {
  return {pack, Pass::kForward, gpu, std::move(microbatches), {}, {}};
}
Task Backward(Pack pack, int gpu, std::vector<int> microbatches) {
  return {pack, Pass::kBackward, gpu, std::move(microbatches), {}, {}};
}

Plan Pipeline(int gpus, int batch, std::vector<Task> tasks) {
  Plan plan;
  plan.gpus = gpus;
  plan.batch = batch;
  plan.tasks = std::move(tasks);
  return plan;
}

Schedule RunChecked(const Profile& profile, const Server& server, const Plan& plan) {
  const Costs costs(profile, plan.batch);
  const auto schedule = Simulator(costs, server).Run(plan);
  EXPECT_TRUE(schedule.has_value());
  if (!schedule.has_value()) return {};
  const absl::Status status = ValidateSchedule(costs, server, *schedule);
  EXPECT_TRUE(status.ok()) << status;
  return *schedule;
}

double CountBytes(const Schedule& schedule, Kind kind) {
  double bytes = 0;
  for (const Action& action : schedule.actions) bytes += action.kind == kind ? action.bytes : 0;
  return bytes;
}

TEST(Simulator, OnePackIsWeightsComputeAndGradient) {
  const Profile profile = EqualLayers(1, 1, 11.5 * kGiBBytes, 0, 0);
  const Schedule schedule =
      RunChecked(profile, PublishedServer(1, 1e12), Pipeline(1, 2, {Backward({0, 0}, 0, {1, 1})}));
  EXPECT_NEAR(schedule.seconds, 1 + 2 * 3 + 1, 1e-6);
  EXPECT_NEAR(schedule.peak_bytes[0], 23 * kGiBBytes, 1);
}

// The weights of the second pack arrive while the first pack computes.
TEST(Simulator, WeightsAreFetchedAheadIfThereIsRoom) {
  const Profile profile = EqualLayers(2, 2, 11.5 * kGiBBytes, 0, 0);
  const Plan plan =
      Pipeline(1, 1, {Forward({0, 0}, 0, {1}), Backward({1, 1}, 0, {1}), Backward({0, 0}, 0, {1})});
  const Schedule roomy = RunChecked(profile, PublishedServer(1, 1e12), plan);
  // 1 s for the first weights, 2 + 6 + 6 s of computing, 1 s for the last gradient.
  EXPECT_NEAR(roomy.seconds, 1 + 2 + 6 + 6 + 1, 1e-6);
  const Schedule tight = RunChecked(profile, PublishedServer(1, 24 * kGiBBytes), plan);
  EXPECT_GT(tight.seconds, roomy.seconds + 0.9);
  EXPECT_LE(tight.peak_bytes[0], 24 * kGiBBytes);
}

TEST(Simulator, GpusShareTheUplink) {
  // Both fetch their weights at the beginning: together they take as long as one after the other.
  const Profile profile = EqualLayers(2, 0.001, 11.5 * kGiBBytes, 0, 0);
  const Plan plan =
      Pipeline(2, 1, {Forward({0, 0}, 0, {1}), Backward({1, 1}, 1, {1}), Backward({0, 0}, 0, {1})});
  const Schedule schedule = RunChecked(profile, PublishedServer(2, 1e12), plan);
  for (const Action& action : schedule.actions) {
    if (action.kind != Kind::kWeightsIn) continue;
    EXPECT_LT(action.end, 3.1);
    EXPECT_GT(action.end, 1.9);
  }
}

TEST(Simulator, OutputsOfABusyReceiverAreCounted) {
  // The second GPU is slow: outputs of the first pile up on it.
  Profile profile = EqualLayers(3, 0.001, 1e6, 1e8, 0);
  for (Sample& sample : profile.samples) sample.forward_seconds[1] = sample.backward_seconds[1] = 1;
  const Plan plan = Pipeline(
      2, 8,
      {Forward({0, 0}, 0, {1, 1, 1, 1, 1, 1, 1, 1}), Forward({1, 1}, 1, {1, 1, 1, 1, 1, 1, 1, 1}),
       Backward({2, 2}, 0, {8}), Backward({0, 1}, 1, {8})});
  const Schedule roomy = RunChecked(profile, PublishedServer(2, 1e10), plan);
  const Schedule tight = RunChecked(profile, PublishedServer(2, 3.4e9), plan);
  EXPECT_GT(roomy.peak_bytes[1] + roomy.peak_bytes[0], 2e9);
  EXPECT_LE(*std::max_element(tight.peak_bytes.begin(), tight.peak_bytes.end()), 3.4e9);
}

TEST(Simulator, APlanThatDoesNotFitHasNoSchedule) {
  const Profile profile = EqualLayers(1, 1, 1e9, 0, 0);
  const Costs costs(profile, 1);
  const Server server = PublishedServer(1, 1.9e9);
  Simulator simulator(costs, server);
  EXPECT_FALSE(simulator.Run(Pipeline(1, 1, {Backward({0, 0}, 0, {1})})).has_value());
}

TEST(Simulator, SegmentsNeedTheActivationsOfOneAtATime) {
  const Profile profile = EqualLayers(9, 0.01, 1e6, 1e6, 1e9);
  Plan plan = Pipeline(
      1, 2, {Forward({0, 7}, 0, {1, 1}), Backward({8, 8}, 0, {1, 1}), Backward({0, 7}, 0, {1, 1})});
  const Schedule whole = RunChecked(profile, PublishedServer(1, 1e11), plan);
  plan.tasks[0].segments = plan.tasks[2].segments = {0, 2, 4, 6};
  const Schedule cut = RunChecked(profile, PublishedServer(1, 1e11), plan);
  EXPECT_GT(whole.peak_bytes[0], 8e9);
  EXPECT_LT(cut.peak_bytes[0], 2.1e9);
  EXPECT_EQ(CountBytes(cut, Kind::kStashOut), 2 * 3 * 1e6);  // one for each segment but the first
  EXPECT_NEAR(cut.seconds, whole.seconds, 0.01);
}

TEST(Simulator, KeptLayersAreNotRunAgain) {
  const Profile profile = EqualLayers(3, 1, 1e6, 1e6, 1e8);
  Plan plan = Pipeline(
      1, 2, {Forward({0, 1}, 0, {1, 1}), Backward({2, 2}, 0, {1, 1}), Backward({0, 1}, 0, {1, 1})});
  const Schedule again = RunChecked(profile, PublishedServer(1, 1e11), plan);
  for (const bool on_host : {false, true}) {
    for (const int layers : {1, 2}) {
      const Keep keep = on_host ? Keep::kOnHost : Keep::kOnGpu;
      plan.tasks[2].segments = {0, 1};
      plan.tasks[2].keep = {layers == 2 ? keep : Keep::kNothing, keep};
      const Schedule kept = RunChecked(profile, PublishedServer(1, 1e11), plan);
      EXPECT_NEAR(kept.seconds, again.seconds - 2 * layers, 0.05) << layers << on_host;
      EXPECT_EQ(CountBytes(kept, Kind::kActivationsOut) > 0, on_host);
    }
  }
}

TEST(Simulator, ResidentPacksAreUpdatedWhereTheyAre) {
  // The weights of a layer take a second each way.
  const Profile profile = EqualLayers(2, 2, 11.5 * kGiBBytes, 0, 0);
  Server server = PublishedServer(1, 1e12);
  server.gpu_bytes_per_second = 7 * 11.5 * kGiBBytes;
  Plan plan =
      Pipeline(1, 1, {Forward({0, 0}, 0, {1}), Backward({1, 1}, 0, {1}), Backward({0, 0}, 0, {1})});
  for (Task& task : plan.tasks) task.is_resident = task.is_backward();
  const Schedule schedule = RunChecked(profile, server, plan);
  EXPECT_NEAR(schedule.seconds, 2 + 6 + 1 + 6 + 1, 1e-6);
  EXPECT_EQ(schedule.swap_bytes(), 0);
  // Weights and twice as much state of both layers, and one gradient.
  EXPECT_NEAR(schedule.peak_bytes[0], (2 * 3 + 1) * 11.5 * kGiBBytes, 1);
}

TEST(Simulator, ResidentPacksOfDataParallelGpusShareStateAndUpdate) {
  const Profile profile = EqualLayers(2, 1, 1e9, 1e6, 1e6);
  Plan plan = Pipeline(2, 4, {Backward({0, 1}, kEveryGpu, {2})});
  plan.mode = Mode::kDataParallel;
  plan.tasks[0].is_resident = true;
  const Schedule schedule = RunChecked(profile, PublishedServer(2, 1e11), plan);
  EXPECT_EQ(CountBytes(schedule, Kind::kWeightsIn) + CountBytes(schedule, Kind::kGradientOut), 0);
  EXPECT_NEAR(CountBytes(schedule, Kind::kReduce), 2e9, 1);
  EXPECT_NEAR(CountBytes(schedule, Kind::kGather), 2e9, 1);
  // Weights, half of the state and gradients of both layers, their work and the input.
  EXPECT_NEAR(schedule.peak_bytes[0], 2 * (1e9 + 1e9 + 1e9) + 2 * 2e6 + 2e6, 1.1e6);
}

TEST(Simulator, DataParallelGpusFetchWeightsAndSumGradientsTogether) {
  const Profile profile = EqualLayers(2, 1, 1e9, 1e6, 1e6);
  Plan plan = Pipeline(2, 4, {Backward({0, 1}, kEveryGpu, {2})});
  plan.mode = Mode::kDataParallel;
  const Schedule schedule = RunChecked(profile, PublishedServer(2, 1e11), plan);
  EXPECT_NEAR(CountBytes(schedule, Kind::kWeightsIn), 2e9, 1);
  EXPECT_NEAR(CountBytes(schedule, Kind::kGather), 2e9, 1);
  EXPECT_NEAR(CountBytes(schedule, Kind::kReduce), 2e9, 1);
  EXPECT_NEAR(CountBytes(schedule, Kind::kGradientOut), 2e9, 1);
}

}  // namespace
}  // namespace thimble::harmony
