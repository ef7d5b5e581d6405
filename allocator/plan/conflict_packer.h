// Packs buffers whose conflicts are given pair by pair.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/packer.h"

namespace thimble::plan {

class ConflictPacker final : public Packer {
 public:
  // `problem` must outlive the packer.
  explicit ConflictPacker(const ConflictProblem& problem);

  bool Pack(const std::vector<std::int32_t>& order, Fit fit, std::int64_t cutoff, Budget& budget,
            Packing& packing) override;
  const std::vector<std::int32_t>& Neighbours(std::int32_t buffer) override;

 private:
  struct Placed {
    std::int64_t begin;
    std::int64_t end;
    std::int32_t buffer;
  };

  void Insert(std::int32_t buffer, std::int64_t offset);
  std::int64_t FindPlace(std::int32_t buffer, Fit fit) const;

  const ConflictProblem& problem_;
  std::vector<Placed> placed_;  // by begin: one scan finds the lowest place, and stops there
  std::vector<std::int32_t> neighbours_;
};

}  // namespace thimble::plan
