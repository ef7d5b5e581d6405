// The validator finds every kind of error in a schedule.
#include "allocator/offline/harmony/validator.h"

#include <functional>
#include <string>

#include "allocator/offline/harmony/published_search.h"
#include "allocator/offline/harmony/simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

using ::testing::HasSubstr;

class Corrupted : public testing::Test {
 protected:
  Corrupted() {
    Plan plan;
    plan.gpus = 2;
    plan.batch = 4;
    plan.tasks = {{{0, 2}, Pass::kForward, 0, {2, 2}, {}, {}},
                  {{3, 5}, Pass::kForward, 1, {2, 2}, {}, {}},
                  {{6, 7}, Pass::kBackward, 0, {1, 1, 1, 1}, {}, {}},
                  {{3, 5}, Pass::kBackward, 1, {2, 2}, {3, 5}, {Keep::kNothing, Keep::kOnHost}},
                  {{0, 2}, Pass::kBackward, 0, {2, 2}, {0, 2}, {Keep::kNothing, Keep::kOnGpu}}};
    schedule_ = *Simulator(costs_, server_).Run(plan);
    EXPECT_EQ(Message(schedule_), "");
    plan.mode = Mode::kDataParallel;
    for (Task& task : plan.tasks) {
      task.gpu = kEveryGpu;
      task.keep.clear();
      task.microbatches = {1, 1};
    }
    dp_ = *Simulator(costs_, server_).Run(plan);
    EXPECT_EQ(Message(dp_), "");
  }

  std::string Message(const Schedule& schedule) const {
    return std::string(ValidateSchedule(costs_, server_, schedule).message());
  }
  static Action& Find(Schedule& schedule, Kind kind, int task) {
    for (Action& action : schedule.actions) {
      if (action.kind == kind && action.task == task) return action;
    }
    ADD_FAILURE() << NameOf(kind) << " of task " << task << " is not there";
    return schedule.actions[0];
  }
  // The validator's message after `change`.
  std::string After(const std::function<void(Schedule&)>& change, bool dp = false) const {
    Schedule schedule = dp ? dp_ : schedule_;
    change(schedule);
    return Message(schedule);
  }
  // Shifts an action in time.
  std::string Moved(Kind kind, int task, double by, bool dp = false) const {
    return After(
        [&](Schedule& s) {
          Action& action = Find(s, kind, task);
          action.begin = std::max(0.0, action.begin + by);
          action.end = std::max(0.0, action.end + by);
        },
        dp);
  }
  std::string Without(Kind kind, int task, bool dp = false) const {
    return After(
        [&](Schedule& s) {
          const Action* gone = &Find(s, kind, task);
          s.actions.erase(s.actions.begin() + (gone - s.actions.data()));
        },
        dp);
  }

  const Profile profile_ = EqualLayers(8, 0.1, 1e8, 1e7, 1e8);
  const Costs costs_{profile_, 4};
  const Server server_ = PublishedServer(2, 1e10);
  Schedule schedule_;
  Schedule dp_;
};

TEST_F(Corrupted, Plans) {
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks.pop_back(); }), HasSubstr("no backward"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[1].pack.first = 4; }), HasSubstr("follow"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[2].pack.first = 5; }), HasSubstr("follow"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[3].pack.last = 4; }), HasSubstr("follow"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[0].microbatches.pop_back(); }),
              HasSubstr("see 2 samples of 4"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[0].microbatches[0] = 0; }),
              HasSubstr("0 samples"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[0].gpu = 2; }), HasSubstr("no GPU 2"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.gpus = 3; }), HasSubstr("for 3 GPUs of 2"));
  EXPECT_THAT(After([](Schedule& s) {
                s.plan.tasks[3].segments = {4, 5};
              }),
              HasSubstr("segment begins with layer 4"));
  EXPECT_THAT(After([](Schedule& s) {
                s.plan.tasks[2].segments = {6, 7};
              }),
              HasSubstr("cannot have"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[4].keep.push_back(Keep::kOnGpu); }),
              HasSubstr("cannot have"));
}

TEST_F(Corrupted, Steps) {
  EXPECT_THAT(After([](Schedule& s) { s.actions[0].gpu = 7; }), HasSubstr("is not a valid action"));
  EXPECT_THAT(After([](Schedule& s) { s.actions[0].end = s.actions[0].begin - 1; }),
              HasSubstr("is not a valid action"));
}

TEST_F(Corrupted, StreamsThatDoTwoThingsAtOnce) {
  EXPECT_THAT(After([](Schedule& s) { s.actions.push_back(Find(s, Kind::kForward, 0)); }),
              HasSubstr("the stream is busy"));
  EXPECT_THAT(After([](Schedule& s) { s.actions.push_back(Find(s, Kind::kReceive, 1)); }),
              HasSubstr("the stream is busy"));
}

TEST_F(Corrupted, Computing) {
  EXPECT_THAT(Without(Kind::kForward, 1), HasSubstr("layer 3"));
  EXPECT_THAT(Without(Kind::kRecompute, 3), HasSubstr("layer 3 is next"));
  EXPECT_THAT(Without(Kind::kBackward, 4), HasSubstr("has no backward"));
  EXPECT_THAT(After([](Schedule& s) { Find(s, Kind::kForward, 0).end -= 0.05; }),
              HasSubstr("takes 0.15"));
  EXPECT_THAT(After([](Schedule& s) { Find(s, Kind::kBackward, 2).first_sample = 1; }),
              HasSubstr("task 2"));
}

TEST_F(Corrupted, WhatComputingNeeds) {
  EXPECT_THAT(Without(Kind::kWeightsIn, 0), HasSubstr("the weights of layer 0 is never there"));
  EXPECT_THAT(Moved(Kind::kWeightsIn, 0, 0.3), HasSubstr("the weights of layer"));
  EXPECT_THAT(Without(Kind::kDataIn, 0), HasSubstr("its input is never there"));
  EXPECT_THAT(Without(Kind::kReceive, 1), HasSubstr("its input is never there"));
  EXPECT_THAT(Moved(Kind::kReceive, 1, -0.2), HasSubstr("receive of task 1"));
  EXPECT_THAT(Without(Kind::kReceive, 4), HasSubstr("its input is never there"));
  EXPECT_THAT(Without(Kind::kStashIn, 3), HasSubstr("its input is never there"));
  EXPECT_THAT(Without(Kind::kStashOut, 1), HasSubstr("the stash is never there"));
  EXPECT_THAT(Without(Kind::kActivationsIn, 3), HasSubstr("the activations of layer 5"));
  EXPECT_THAT(Without(Kind::kActivationsOut, 1), HasSubstr("the activations of layer 5"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[4].keep.clear(); }),
              HasSubstr("layer 2 has no recompute"));
}

TEST_F(Corrupted, Residents) {
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[0].is_resident = true; }),
              HasSubstr("layers 0 to 2 cannot be resident"));
  EXPECT_THAT(After([](Schedule& s) { s.plan.tasks[4].is_resident = true; }),
              HasSubstr("leaves GPU 0 1 times"));
  Plan plan = dp_.plan;
  plan.tasks[4].is_resident = true;
  const Schedule resident = *Simulator(costs_, server_).Run(plan);
  EXPECT_EQ(Message(resident), "");
  Schedule late = resident;
  Find(late, Kind::kGather, 4).begin = 0;
  EXPECT_NE(Message(late), "");
  Schedule quick = resident;
  Find(quick, Kind::kUpdate, 4).end = Find(quick, Kind::kUpdate, 4).begin;
  EXPECT_THAT(Message(quick), HasSubstr("of the GPU"));
}

TEST_F(Corrupted, Gradients) {
  EXPECT_THAT(Without(Kind::kGradientOut, 3), HasSubstr("leaves GPU 1 0 times"));
  EXPECT_THAT(Without(Kind::kUpdate, 4), HasSubstr("is applied 0 times"));
  EXPECT_THAT(After([](Schedule& s) {
                Action twice = Find(s, Kind::kUpdate, 4);
                twice.begin = twice.end = 1e3;
                s.actions.push_back(twice);
              }),
              HasSubstr("is applied 2 times"));
  EXPECT_THAT(Moved(Kind::kGradientOut, 4, -0.5), HasSubstr("gradient out of task 4"));
  EXPECT_THAT(Moved(Kind::kUpdate, 4, -0.5), HasSubstr("update of task 4"));
  EXPECT_THAT(After([](Schedule& s) { Find(s, Kind::kGradientOut, 4).bytes /= 2; }),
              HasSubstr("bytes"));
}

TEST_F(Corrupted, WhatGpusDoTogether) {
  EXPECT_THAT(Without(Kind::kGather, 0, true), HasSubstr("what the other GPUs fetched"));
  EXPECT_THAT(Moved(Kind::kGather, 0, -0.2, true), HasSubstr("gather of task 0"));
  EXPECT_THAT(Without(Kind::kReduce, 3, true), HasSubstr("is summed 0 times"));
  EXPECT_THAT(Moved(Kind::kReduce, 4, -0.3, true), HasSubstr("reduce of task 4"));
}

TEST_F(Corrupted, Links) {
  EXPECT_THAT(After([](Schedule& s) {
                Action& action = Find(s, Kind::kStashOut, 1);
                s.out_bytes += 1e12 - action.bytes;
                action.bytes = 1e12;
              }),
              HasSubstr("moves 1e+12 bytes in"));
}

TEST_F(Corrupted, SumsAndPeaks) {
  EXPECT_THAT(After([](Schedule& s) { s.seconds *= 0.9; }), HasSubstr("claims"));
  EXPECT_THAT(After([](Schedule& s) { s.in_bytes -= 1e6; }), HasSubstr("claims"));
  EXPECT_THAT(After([](Schedule& s) { s.out_bytes += 1e6; }), HasSubstr("claims"));
  EXPECT_THAT(After([](Schedule& s) { s.peer_bytes += 1e6; }), HasSubstr("claims"));
  EXPECT_THAT(After([](Schedule& s) { s.compute_fraction = 1; }), HasSubstr("claims"));
  EXPECT_THAT(After([](Schedule& s) { s.peak_bytes[1] -= 1e6; }),
              HasSubstr("bytes in memory at once, not"));
}

TEST_F(Corrupted, Memory) {
  Server smaller = server_;
  smaller.memory_bytes = schedule_.peak_bytes[0] - 1e6;
  EXPECT_THAT(std::string(ValidateSchedule(costs_, smaller, schedule_).message()),
              HasSubstr("bytes in memory at once, more than"));
}

TEST_F(Corrupted, PublishedPacksThatDoNotFit) {
  Server server = server_;
  const Schedule schedule = SearchPublished(costs_, server, 4, {})[0];
  EXPECT_TRUE(ValidateSchedule(costs_, server, schedule).ok());
  server.memory_bytes /= 20;
  EXPECT_THAT(std::string(ValidateSchedule(costs_, server, schedule).message()),
              HasSubstr("the pack of layers"));
}

}  // namespace
}  // namespace thimble::harmony
