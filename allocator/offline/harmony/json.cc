#include "allocator/offline/harmony/json.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/json.h"

namespace thimble::harmony {
namespace {

std::string Whole(double bytes) { return absl::StrCat(std::llround(bytes)); }

std::string List(const std::vector<int>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

std::vector<int> LayersOf(const Task& task, Keep keep) {
  std::vector<int> layers;
  for (const Segment& segment : SegmentsDown(task)) {
    if (segment.keep != keep) continue;
    for (int i = segment.layers.last; i >= segment.layers.first; --i) layers.push_back(i);
  }
  return {layers.rbegin(), layers.rend()};
}

std::string TaskJson(const Task& task) {
  std::vector<int> segments = task.segments;
  if (segments.empty()) segments.push_back(task.pack.first);
  std::string text = absl::StrFormat(
      R"({"first":%d,"last":%d,"gpu":%d,"microbatches":%s,"segments":%s)", task.pack.first,
      task.pack.last, task.gpu, List(task.microbatches), List(segments));
  if (task.is_backward()) {
    absl::StrAppend(&text, R"(,"update":")", task.is_resident ? "gpu" : "host", R"(","resident":)",
                    task.is_resident ? "true" : "false", R"(,"keep":)",
                    List(LayersOf(task, Keep::kOnGpu)), R"(,"swap":)",
                    List(LayersOf(task, Keep::kOnHost)));
  }
  return absl::StrCat(text, "}");
}

}  // namespace

std::string PlanJson(const Schedule& schedule) {
  const Plan& plan = schedule.plan;
  std::vector<std::string> forward;
  std::vector<std::string> backward;
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
    (plan.tasks[t].is_backward() ? backward : forward).push_back(TaskJson(plan.tasks[t]));
  }
  std::vector<std::string> peaks;
  peaks.reserve(schedule.peak_bytes.size());
  for (const double bytes : schedule.peak_bytes) peaks.push_back(Whole(bytes));
  return absl::StrCat(
      absl::StrFormat(R"({"mode":"%s","gpus":%d,"batch":%d,"rules":"%s","layers":%d,)",
                      NameOf(plan.mode), plan.gpus, plan.batch, NameOf(plan.rules),
                      plan.tasks[plan.fused()].pack.last + 1),
      "\n\"forward\":[\n", absl::StrJoin(forward, ",\n"), "],\n\"backward\":[\n",
      absl::StrJoin(backward, ",\n"), "],\n",
      absl::StrFormat(R"("seconds":%.9g,"peak_bytes":[%s],"swap_in_bytes":%s,"swap_out_bytes":%s,)",
                      schedule.seconds, absl::StrJoin(peaks, ","), Whole(schedule.in_bytes),
                      Whole(schedule.out_bytes)),
      absl::StrFormat(R"("p2p_bytes":%s,"compute_fraction":%.6f})", Whole(schedule.peer_bytes),
                      schedule.compute_fraction),
      "\n");
}

std::string ScheduleJson(const Schedule& schedule) {
  std::vector<std::string> streams;
  streams.reserve(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(absl::StrCat("\"", NameOf(static_cast<Stream>(i)), "\""));
  }
  std::vector<std::string> kinds;
  kinds.reserve(static_cast<int>(Kind::kDelete) + 1);
  for (int i = 0; i <= static_cast<int>(Kind::kDelete); ++i) {
    kinds.push_back(absl::StrCat("\"", NameOf(static_cast<Kind>(i)), "\""));
  }
  std::vector<std::string> actions;
  actions.reserve(schedule.actions.size());
  for (const Action& action : schedule.actions) {
    actions.push_back(absl::StrFormat(
        "[%d,%d,%d,%d,%d,%d,%d,%d,%s,%.9g,%.9g]", action.gpu, static_cast<int>(action.stream),
        static_cast<int>(action.kind), action.task, action.layers.first, action.layers.last,
        action.first_sample, action.end_sample, Whole(action.bytes), action.begin, action.end));
  }
  return absl::StrCat("{\"plan\":", PlanJson(schedule), ",\"streams\":[",
                      absl::StrJoin(streams, ","), "],\n\"kinds\":[", absl::StrJoin(kinds, ","),
                      "],\n\"steps\":[\n", absl::StrJoin(actions, ",\n"), "]}\n");
}

std::string BaselinesJson(const Baselines& baselines) {
  JsonObject all;
  for (int i = 0; i < kBaselines; ++i) {
    if (!baselines[i].has_value()) continue;
    const Baseline& one = *baselines[i];
    all.AddRaw(NameOf(static_cast<BaselineKind>(i)),
               JsonObject()
                   .Add("seconds", one.seconds)
                   .Add("swap_bytes", std::llround(one.swap_bytes))
                   .Add("compute_fraction", one.compute_fraction)
                   .Add("microbatch", one.microbatch)
                   .Text());
  }
  return all.Text();
}

}  // namespace thimble::harmony
