// Guided ejection: the search wants all buffers below a target that is lower than the best packing.
// Buffers above it wait. The search puts them back one by one where they do the least damage; the
// buffers that they overlap there are ejected and wait in turn. A buffer that had to eject others
// becomes more expensive to eject, and a buffer that was just placed is left alone for a while, so
// that the search does not go in circles.
//
// Costs are integers, and a place is free if and only if its cost is zero.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/packer.h"

namespace thimble::plan {

class Ejection {
 public:
  Ejection(Packer& packer, std::uint64_t seed);

  // Continues for about `work`. A packing that reaches the target becomes `best`, and the next
  // target is lower.
  void Run(std::uint64_t work, Budget& budget, Packing& best);

 private:
  struct Edge {  // where a placed buffer begins or ends
    std::int64_t offset;
    std::int32_t buffer;
  };
  struct Cost {  // of overlapping the buffer that begins or ends at `offset`
    std::int64_t offset;
    std::int64_t cost;
  };

  void Start(const Packing& best);
  void SetWeights();
  void SortEdges();
  std::int32_t TakeWaiting();
  void Insert(std::int32_t buffer, std::int64_t offset);
  void Eject(std::int32_t buffer);
  // Puts the edges of the placed neighbours of `buffer` into near_begins_ and near_ends_.
  void FindCosts(std::int32_t buffer);
  // The offset for `size` bytes at the least cost.
  std::int64_t CheapestPlace(std::int64_t size, std::int64_t& cost);
  // False if fixed buffers leave no place.
  bool PlaceOne();

  Packer& packer_;
  Random random_;
  int attempts_ = 0;
  std::int64_t step_share_;      // the target is best - gap / step_share_
  std::uint64_t attempt_limit_;  // work for one attempt
  std::int64_t target_ = 0;
  std::int64_t start_height_ = kNoHeight;  // of the best packing when the attempt started
  std::uint64_t attempt_work_ = 0;         // left for this attempt
  std::uint64_t iteration_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> waiting_;
  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> penalties_;
  std::vector<std::uint64_t> left_alone_until_;

  // Of all placed buffers, in rising order, so that no placement has to sort them.
  std::vector<Edge> begins_;
  std::vector<Edge> ends_;

  // For the buffer that is being placed:
  std::vector<std::int32_t> neighbours_;
  std::vector<std::int64_t> costs_;  // by buffer: of ejecting it; 0 unless it is a neighbour
  std::vector<Cost> near_begins_;    // of neighbours, in rising order
  std::vector<Cost> near_ends_;
};

}  // namespace thimble::plan
