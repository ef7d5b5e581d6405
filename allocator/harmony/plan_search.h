// One search of search.h: begins with published plans and simple ones, changes the best of them,
// and last says what stays on GPUs or waits on the host.
//
//   search.cc           the phases, and what a plan costs
//   search_starts.cc    plans to begin with
//   search_changes.cc   small changes of the best ones
//   search_refine.cc    activations that stay for the backward, packs that stay for the next
//                       iteration
//
// The random numbers and the work that is counted are the same on every machine; there is no clock.
//
// Private to allocator/harmony.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "allocator/harmony/costs.h"
#include "allocator/harmony/plan.h"
#include "allocator/harmony/schedule.h"
#include "allocator/harmony/search.h"
#include "allocator/harmony/server.h"
#include "allocator/harmony/shape.h"
#include "allocator/harmony/simulator.h"

namespace thimble::harmony {

struct Candidate {
  double cost = std::numeric_limits<double>::infinity();
  Shape shape;
};

class PlanSearch {
 public:
  // `costs` and `server` must outlive it.
  PlanSearch(const Costs& costs, const Server& server, int batch, const SearchOptions& options);

  std::optional<Schedule> Run();

 private:
  bool IsAllowed(Mode mode) const;
  int ShareOf(Mode mode) const { return mode == Mode::kPipeline ? batch_ : batch_ / gpus_; }
  int LanesOf(Mode mode) const { return mode == Mode::kPipeline ? gpus_ : 1; }

  std::uint64_t Spent() const;
  std::uint64_t PartOf(double part) const { return static_cast<std::uint64_t>(budget_ * part); }
  bool IsOver(std::uint64_t budget) const;

  // No plan of this shape takes fewer seconds.
  double Bound(const Shape& shape) const;
  double Evaluate(const Shape& shape);
  // Seconds, and what is swapped as some more.
  double CostOf(const Plan& plan);
  // Among the elite, if it is good enough. False if it does not fit, or cannot be.
  bool Try(const Shape& shape);

  // The published plans, for the server and for ones with less memory.
  void Seeds(Mode mode);
  // Even and tapered packs of all sizes, those with the least to compute more often.
  void Grid(Mode mode, std::uint64_t budget);
  // What needs the least memory: packs of one layer, from one sample at a time on.
  void Smallest();
  // Climbs from each of the best in turn; when nothing helps for long, from the next one.
  void Change(std::uint64_t budget);
  // False if that change is not possible, and `shape` is as it was.
  bool ChangeOnce(Shape& shape);
  // Layers of the best ones are kept, as many as the bus can carry beside what is computed.
  void StartKeeping(std::uint64_t budget);
  Shape KeepAtRate(Shape shape, double rate, double cheapest) const;
  bool ChangeKeep(Shape& shape);
  // Packs of the best ones stay on their GPUs: more and more, from the last layer on.
  void StartResiding(std::uint64_t budget);

  int Random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  const Costs& costs_;
  const Server& server_;
  const int batch_;
  const SearchOptions options_;
  const int gpus_;
  Simulator simulator_;
  const std::uint64_t budget_;
  std::uint64_t plans_ = 0;
  std::vector<Candidate> elite_;  // best first
  bool is_refining_ = false;      // what is kept and what is resident changes too
  std::mt19937 random_{1};
};

}  // namespace thimble::harmony
