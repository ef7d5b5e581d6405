// Finds a packing within a capacity, or proves that there is none. A depth-first search for
// problems of up to a few hundred buffers.
//
// The search visits only canonical packings. In them every buffer rests on another one or on the
// ground, and buffers are placed in the order of (offset, rank). So each buffer is placed at its
// floor, the highest top among its placed neighbours, and every packing is visited once, not once
// per order. A branch ends when
//   X1  a buffer could be placed wholly below where the next one would go: it belongs there first;
//   X2  a section has too little room: above the lowest floor in it, its unplaced sizes do not fit;
//       a buffer whose turn has passed at its floor counts with the floor that its neighbours,
//       which must come to lie under it, will give it;
//   X3  nothing can come to lie under such a buffer any more;
//   X4  the state, unplaced buffers and their floors, is known to have failed.
// A buffer with no unplaced neighbour needs no second try. Where no unplaced buffer spans two
// sections, the two sides are searched one after the other. (After MiniMalloc; X3, X4 and the
// lifting in X2 are additions.)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "allocator/offline/plan/sections.h"
#include "allocator/plan/budget.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/random.h"

namespace thimble::plan {

// Traits by which buffers are ranked: the largest first. The next trait breaks ties.
enum class Trait : std::uint8_t { kSize, kDuration, kArea, kLength, kVolume, kNeighbours, kLoad };
using Ranking = std::array<Trait, 3>;

enum class Outcome : std::uint8_t { kFound, kImpossible, kGaveUp };

class ExactSearch {
 public:
  // `problem` and `sections` (of it) must outlive the search.
  ExactSearch(const Problem& problem, const Sections& sections);

  // Gives up after `max_nodes`, or when the budget is over. `noise` (in percent) varies areas and
  // sizes for the ranking.
  Outcome Run(std::int64_t capacity, const Ranking& ranking, std::uint64_t max_nodes, int noise,
              Random& random, Budget& budget);

  // After kFound.
  const std::vector<std::int64_t>& offsets() const { return found_; }

 private:
  // The order in which buffers are placed.
  struct Turn {
    std::int64_t offset;
    std::int32_t rank;

    bool operator<(const Turn& other) const {
      return offset != other.offset ? offset < other.offset : rank < other.rank;
    }
  };
  struct Choice {
    Turn turn;
    std::int32_t buffer;
  };
  struct Raise {
    std::int32_t buffer;
    std::int64_t floor;  // before
  };
  // State of one level of the search while deeper ones run.
  struct Frame {
    std::vector<std::int32_t> unplaced;
    std::vector<Choice> choices;
    std::vector<Raise> raises;
    std::vector<std::int32_t> cuts;
  };
  struct Failure {
    std::uint64_t state = 0;
    Turn turn{0, 0};
    std::uint32_t run = 0;
  };

  std::uint64_t StateOf(std::int32_t buffer) const;
  // Ranks the unplaced buffers within `part` anew and searches there.
  Outcome SearchPart(Span part, const std::vector<std::int32_t>& candidates, std::size_t depth);
  Outcome Search(Span part, const std::vector<std::int32_t>& candidates, Turn after,
                 std::uint64_t state, std::size_t depth);
  // Tries one choice and all that follow. `was_free`: the buffer has no unplaced neighbour.
  Outcome Try(Span part, const Choice& choice, std::uint64_t state, std::size_t depth,
              bool& was_free);
  Outcome Descend(Span part, const Choice& choice, std::uint64_t state, std::size_t depth);
  std::int64_t TraitOf(std::int32_t buffer, Trait trait) const;
  void Rank(const std::vector<std::int32_t>& unplaced);
  // Finds the choices; false if X2 or X3 ends the branch.
  bool FindChoices(Span part, Turn after, Frame& frame);
  bool LiftFloor(std::int32_t buffer, std::int64_t lowest, std::int64_t& floor) const;

  const Problem& problem_;
  const std::vector<Span>& spans_;
  const std::int32_t section_count_;
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::int64_t> durations_;  // in a unit that keeps areas within 63 bits

  std::int64_t capacity_ = 0;
  Ranking ranking_{};
  std::vector<std::int64_t> noise_;  // by buffer, about 1024
  Budget* budget_ = nullptr;
  std::uint64_t nodes_left_ = 0;

  std::vector<std::uint8_t> is_placed_;
  std::vector<std::int64_t> floors_;    // by buffer
  std::vector<std::int32_t> ranks_;     // by buffer
  std::vector<std::int64_t> unplaced_;  // by section: the sum of sizes
  std::vector<std::int32_t> crossing_;  // by section: unplaced buffers that also span the next one
  std::vector<std::int64_t> low_floors_;  // by section: scratch
  std::vector<Frame> frames_;             // by depth
  std::vector<std::int64_t> found_;
  std::vector<Failure> failures_;  // a hash table; newer entries overwrite older ones
  std::uint32_t runs_ = 0;
};

}  // namespace thimble::plan
