// The search of search.h at one rung: begins with what the rungs below have found, published plans
// and simple ones, changes the best of them, and last says what stays on GPUs or waits on the host.
//
//   search_ladder.cc    from rung to rung
//   search.cc           the phases at a rung, and what a plan costs
//   search_starts.cc    plans to begin with
//   search_changes.cc   small changes of the best ones
//   search_refine.cc    activations that stay for the backward, packs that stay for the next
//                       iteration
//
// The random numbers and the work that is counted are the same on every machine; there is no clock.
//
// Private to allocator/offline/harmony.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/search.h"
#include "allocator/offline/harmony/server.h"
#include "allocator/offline/harmony/shape.h"
#include "allocator/offline/harmony/simulator.h"

namespace thimble::harmony {

struct Candidate {
  double cost = std::numeric_limits<double>::infinity();
  Shape shape;
  Simulator::Outcome outcome;
};

// What a rung hands to the next one.
struct Carried {
  std::vector<std::vector<Shape>> published;  // of this memory, and of less and less
  std::vector<Shape> plain;                   // the best that keep nothing, best first
  std::vector<Shape> refined;                 // the best of all
};

// May plans of this mode be tried?
bool IsAllowed(Mode mode, const SearchOptions& options, const Server& server, int batch);

class PlanSearch {
 public:
  // `costs` and `server` must outlive it. `server` has the memory of the rung. 0: no limit.
  PlanSearch(const Costs& costs, const Server& server, int batch, const SearchOptions& options,
             double swap_limit, std::uint64_t budget, unsigned seed);

  // All phases, the budget divided among them.
  void Search(Carried& carried);

  // The best one; nothing if none fits.
  const Candidate* best() const { return elite_.empty() ? nullptr : &elite_.front(); }
  std::optional<Schedule> Run(const Shape& shape);
  std::uint64_t Spent() const;

 private:
  int ShareOf(Mode mode) const { return mode == Mode::kPipeline ? batch_ : batch_ / gpus_; }
  int LanesOf(Mode mode) const { return mode == Mode::kPipeline ? gpus_ : 1; }

  // What is spent when a step that begins now has had its part of the budget.
  std::uint64_t From(double part) const {
    return Spent() + static_cast<std::uint64_t>(static_cast<double>(budget_) * part);
  }
  bool IsOver(std::uint64_t budget) const;

  // No plan of this shape takes fewer seconds.
  double Bound(const Shape& shape) const;
  // As it is simulated: seconds, and what is swapped as some more. Its cost is infinite if it does
  // not fit, and may be if it is above `most`.
  Candidate Simulate(const Shape& shape, double most);
  // Among the elite, if it is good enough. False if it does not fit, or cannot be.
  bool Try(const Shape& shape);

  // Until one fits at least, and for as long as the budget lasts.
  void TryPublished(const std::vector<Shape>& shapes, std::uint64_t budget);
  void TryAll(const std::vector<Shape>& shapes, std::uint64_t budget);
  void GridOfModes(double part);
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
  const double swap_limit_;
  const int gpus_;
  Simulator simulator_;
  const std::uint64_t budget_;
  std::uint64_t plans_ = 0;
  std::vector<Candidate> elite_;  // best first
  bool is_refining_ = false;      // what is kept and what is resident changes too
  std::mt19937 random_;
};

}  // namespace thimble::harmony
