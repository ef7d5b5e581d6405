// The search of search.h at one rung. It begins with what lower rungs found, with published plans
// and with simple ones, changes the best of them, and then decides what stays on GPUs or waits on
// the host.
//
//   search_ladder.cc    from rung to rung
//   search.cc           the phases at a rung, and what a plan costs
//   search_starts.cc    plans to begin with
//   search_changes.cc   small changes to the best ones
//   search_refine.cc    activations that stay for the backward, packs that stay for the next
//                       iteration
//
// Random numbers and the count of work are the same on every machine. No clock is used.
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
  std::vector<std::vector<Shape>> published;  // for this memory, then for less and less
  std::vector<Shape> plain;                   // those that keep nothing, best first
  std::vector<Shape> refined;                 // all kinds, best first
};

// Whether plans of this mode may be tried.
bool IsAllowed(Mode mode, const SearchOptions& options, const Server& server, int batch);

class PlanSearch {
 public:
  // `costs` and `server` must outlive it. `server` has the memory of the rung. A limit of 0: none.
  PlanSearch(const Costs& costs, const Server& server, int batch, const SearchOptions& options,
             double swap_limit, std::uint64_t budget, unsigned seed);

  // Runs all phases, with the budget divided among them.
  void Search(Carried& carried);

  // The best schedule; nothing if none fits.
  const Candidate* best() const { return elite_.empty() ? nullptr : &elite_.front(); }
  std::optional<Schedule> Run(const Shape& shape);
  std::uint64_t Spent() const;

 private:
  int ShareOf(Mode mode) const { return mode == Mode::kPipeline ? batch_ : batch_ / gpus_; }
  int LanesOf(Mode mode) const { return mode == Mode::kPipeline ? gpus_ : 1; }

  // The work at which a phase that begins now has used its part of the budget.
  std::uint64_t From(double part) const {
    return Spent() + static_cast<std::uint64_t>(static_cast<double>(budget_) * part);
  }
  bool IsOver(std::uint64_t budget) const;

  // A lower bound: no plan of this shape takes fewer seconds.
  double Bound(const Shape& shape) const;
  // The simulated cost: seconds, plus a price for swapped bytes. Infinite if the plan does not fit,
  // and possibly if the cost is above `most`.
  Candidate Simulate(const Shape& shape, double most);
  // Adds it to the elite if it is good enough. False if it does not fit or is impossible.
  bool Try(const Shape& shape);

  // Runs until at least one plan fits and the budget is used up.
  void TryPublished(const std::vector<Shape>& shapes, std::uint64_t budget);
  void TryAll(const std::vector<Shape>& shapes, std::uint64_t budget);
  void GridOfModes(double part);
  // Even and tapered packs of all sizes, with those that compute least tried more often.
  void Grid(Mode mode, std::uint64_t budget);
  // The least memory: packs of one layer, beginning with one sample at a time.
  void Smallest();
  // Hill climbing from each of the best plans, moving on when nothing has helped for long.
  void Change(std::uint64_t budget);
  // False if that change is not possible; `shape` is then unchanged.
  bool ChangeOnce(Shape& shape);
  // Keeps layers of the best plans, as many as the bus can carry while the GPUs compute.
  void StartKeeping(std::uint64_t budget);
  Shape KeepAtRate(Shape shape, double rate, double cheapest) const;
  bool ChangeKeep(Shape& shape);
  // Makes packs of the best plans resident, more and more, from the last layer down.
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
  bool is_refining_ = false;      // changes also what is kept and what is resident
  std::mt19937 random_;
};

}  // namespace thimble::harmony
