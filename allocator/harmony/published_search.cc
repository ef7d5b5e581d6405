#include "allocator/harmony/published_search.h"

#include <algorithm>
#include <utility>

#include "allocator/harmony/packers.h"
#include "allocator/harmony/published_timing.h"

namespace thimble::harmony {
namespace {

class Search {
 public:
  Search(const Costs& costs, const Server& server, int batch, const PublishedSearch& search,
         std::size_t most)
      : costs_(costs), server_(server), search_(search), most_(most) {
    plan_.mode = search.mode;
    plan_.rules = Rules::kHarmony;
    plan_.prefetch = search.prefetch;
    plan_.gpus = server.gpu_count();
    plan_.batch = batch;
  }

  std::vector<Schedule> Run() {
    for (const int size : Divisors()) {
      for (const Packer packer : Packers()) {
        const std::vector<Pack> packs = CutIntoPacks(costs_, packer, Pass::kBackward, size,
                                                     costs_.layer_count(), server_.memory_bytes);
        if (!packs.empty()) TryForward(size, packs);
      }
    }
    return std::move(best_);
  }

 private:
  // The largest first: they are the fastest, mostly, and then others need no look.
  std::vector<int> Divisors() const {
    std::vector<int> sizes;
    for (int size = std::min(plan_.share(), costs_.largest()); size >= 1; --size) {
      if (plan_.share() % size == 0) sizes.push_back(size);
    }
    return sizes;
  }
  std::vector<Packer> Packers() const {
    if (search_.packers == PackerSet::kPublished) return {Packer::kBalancedTime};
    return {Packer::kBalancedTime, Packer::kBalancedMemory, Packer::kGreedyMemory};
  }

  void TryForward(int backward_size, const std::vector<Pack>& backward) {
    if (backward.size() == 1) {
      Evaluate(backward_size, {}, backward_size, backward);
      return;
    }
    const std::vector<Pack> reused(backward.begin(), backward.end() - 1);
    for (const int size : Divisors()) {
      if (size < backward_size) continue;
      for (const Packer packer : Packers()) {
        const std::vector<Pack> packs = CutIntoPacks(costs_, packer, Pass::kForward, size,
                                                     backward.back().first, server_.memory_bytes);
        if (!packs.empty()) Evaluate(size, packs, backward_size, backward);
      }
      const bool fits = std::all_of(reused.begin(), reused.end(), [&](const Pack& pack) {
        return costs_.PeakBytes(Pass::kForward, size, pack) < server_.memory_bytes;
      });
      if (fits) Evaluate(size, reused, backward_size, backward);
    }
  }

  // Of computing alone.
  double LeastSeconds(int forward_size, int backward_size, int fused_first) const {
    const double share = plan_.share();
    double seconds = costs_.Seconds(Pass::kBackward, backward_size, {0, costs_.layer_count() - 1}) *
                     share / backward_size;
    if (fused_first > 0) {
      seconds +=
          costs_.Seconds(Pass::kForward, forward_size, {0, fused_first - 1}) * share / forward_size;
    }
    return plan_.mode == Mode::kPipeline ? seconds / plan_.gpus : seconds;
  }

  void Evaluate(int forward_size, const std::vector<Pack>& forward, int backward_size,
                const std::vector<Pack>& backward) {
    if (best_.size() == most_ &&
        LeastSeconds(forward_size, backward_size, backward.back().first) > best_.back().seconds) {
      return;
    }
    plan_.tasks.clear();
    const auto add = [&](const Pack& pack, Pass pass, int size) {
      Task task;
      task.pack = pack;
      task.pass = pass;
      task.microbatches.assign(plan_.share() / size, size);
      if (plan_.mode == Mode::kPipeline) {
        task.gpu = static_cast<int>(plan_.tasks.size()) % plan_.gpus;
      }
      plan_.tasks.push_back(task);
    };
    for (const Pack& pack : forward) add(pack, Pass::kForward, forward_size);
    for (std::size_t i = backward.size(); i-- > 0;)
      add(backward[i], Pass::kBackward, backward_size);
    Schedule schedule = TimePublished(costs_, server_, plan_);
    if (schedule.steps.empty()) return;
    const auto place =
        std::upper_bound(best_.begin(), best_.end(), schedule.seconds,
                         [](double value, const Schedule& other) { return value < other.seconds; });
    best_.insert(place, std::move(schedule));
    if (best_.size() > most_) best_.pop_back();
  }

  const Costs& costs_;
  const Server& server_;
  const PublishedSearch search_;
  const std::size_t most_;
  Plan plan_;
  std::vector<Schedule> best_;
};

}  // namespace

std::vector<Schedule> SearchPublished(const Costs& costs, const Server& server, int batch,
                                      const PublishedSearch& search, std::size_t most) {
  return Search(costs, server, batch, search, most).Run();
}

}  // namespace thimble::harmony
