#include "allocator/offline/harmony/published_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "allocator/offline/harmony/published_timing.h"

namespace thimble::harmony {
namespace {

struct Cut {
  int forward_size = 0;
  std::vector<Pack> forward;
  int backward_size = 0;
  std::vector<Pack> backward;
};

bool operator==(const Cut& a, const Cut& b) {
  return a.forward_size == b.forward_size && a.backward_size == b.backward_size &&
         a.forward == b.forward && a.backward == b.backward;
}

class Search {
 public:
  Search(const Costs& costs, const Server& server, int batch, const PublishedSearch& search,
         std::size_t most)
      : costs_(costs), server_(server), packers_(search.packers), most_(most) {
    plan_.mode = search.mode;
    plan_.rules = Rules::kHarmony;
    plan_.prefetch = search.prefetch;
    plan_.gpus = server.gpu_count();
    plan_.batch = batch;
  }

  // Times what computes least first: then most others can be skipped.
  std::vector<Schedule> Run() {
    for (const int size : Divisors(Pass::kBackward)) AddCuts(size);
    std::vector<double> least;
    for (const Cut& cut : cuts_) least.push_back(LeastSeconds(cut));
    std::vector<std::size_t> order(cuts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return least[a] < least[b]; });
    for (const std::size_t i : order) {
      if (best_.size() == most_ && least[i] > best_.back().schedule.seconds) break;
      Time(i);
    }
    std::vector<Schedule> schedules;
    for (Timed& one : best_) schedules.push_back(std::move(one.schedule));
    return schedules;
  }

 private:
  struct Timed {
    std::size_t cut = 0;
    Schedule schedule;
  };

  std::vector<int> Divisors(Pass pass) const {
    std::vector<int> sizes;
    const int most = std::min(plan_.share(), costs_.largest(pass));
    for (int size = costs_.smallest(pass); size <= most; ++size) {
      if (plan_.share() % size == 0) sizes.push_back(size);
    }
    return sizes;
  }

  void AddCuts(int size) {
    for (const Packer packer : packers_) {
      if (packer == Packer::kReuse) continue;
      const std::vector<Pack> packs = CutIntoPacks(costs_, packer, Pass::kBackward, size,
                                                   costs_.layer_count(), server_.memory_bytes);
      if (packs.size() == 1) Add({size, {}, size, packs});
      if (packs.size() > 1) AddForwardCuts(size, packs);
    }
  }

  void AddForwardCuts(int backward_size, const std::vector<Pack>& backward) {
    const std::vector<Pack> others(backward.begin(), backward.end() - 1);
    for (const int size : Divisors(Pass::kForward)) {
      if (size < backward_size) continue;
      for (const Packer packer : packers_) {
        if (packer != Packer::kReuse) {
          std::vector<Pack> packs = CutIntoPacks(costs_, packer, Pass::kForward, size,
                                                 backward.back().first, server_.memory_bytes);
          if (!packs.empty()) Add({size, std::move(packs), backward_size, backward});
        } else if (MayReuse(costs_, others, size, server_.memory_bytes)) {
          Add({size, others, backward_size, backward});
        }
      }
    }
  }

  void Add(Cut cut) {
    if (std::find(cuts_.begin(), cuts_.end(), cut) == cuts_.end()) cuts_.push_back(std::move(cut));
  }

  // Seconds of computing alone.
  double LeastSeconds(const Cut& cut) const {
    const double share = plan_.share();
    const int layers = costs_.layer_count();
    double seconds = costs_.Seconds(Pass::kBackward, cut.backward_size, {0, layers - 1}) * share /
                     cut.backward_size;
    if (!cut.forward.empty()) {
      seconds += costs_.Seconds(Pass::kForward, cut.forward_size, {0, cut.forward.back().last}) *
                 share / cut.forward_size;
    }
    return plan_.mode == Mode::kPipeline ? seconds / plan_.gpus : seconds;
  }

  void Time(std::size_t which) {
    const Cut& cut = cuts_[which];
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
    for (const Pack& pack : cut.forward) add(pack, Pass::kForward, cut.forward_size);
    for (std::size_t i = cut.backward.size(); i-- > 0;) {
      add(cut.backward[i], Pass::kBackward, cut.backward_size);
    }
    Timed one = {which, TimePublished(costs_, server_, plan_)};
    if (one.schedule.actions.empty()) return;
    const auto is_before = [](const Timed& a, const Timed& b) {
      return a.schedule.seconds != b.schedule.seconds ? a.schedule.seconds < b.schedule.seconds
                                                      : a.cut < b.cut;
    };
    best_.insert(std::upper_bound(best_.begin(), best_.end(), one, is_before), std::move(one));
    if (best_.size() > most_) best_.pop_back();
  }

  const Costs& costs_;
  const Server& server_;
  const PackerList packers_;
  const std::size_t most_;
  Plan plan_;
  std::vector<Cut> cuts_;  // in the published order
  std::vector<Timed> best_;
};

}  // namespace

PackerList PackersOfTheRuns() { return {Packer::kBalancedTime, Packer::kReuse}; }

PackerList DefaultPackers() {
  return {Packer::kGreedyReverseAddx, Packer::kBalancedAddx, Packer::kReuse, Packer::kBalancedTime};
}

std::vector<Schedule> SearchPublished(const Costs& costs, const Server& server, int batch,
                                      const PublishedSearch& search, std::size_t most) {
  return Search(costs, server, batch, search, most).Run();
}

}  // namespace thimble::harmony
