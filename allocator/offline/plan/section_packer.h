// Packs buffers with known lifetimes.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/offline/plan/occupancy.h"
#include "allocator/offline/plan/sections.h"
#include "allocator/plan/packer.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

class SectionPacker final : public Packer {
 public:
  // `sections` are those of `problem` and must outlive the packer.
  SectionPacker(const Problem& problem, const Sections& sections);

  bool Pack(const std::vector<std::int32_t>& order, Fit fit, std::int64_t cutoff, Budget& budget,
            Packing& packing) override;
  const std::vector<std::int32_t>& Neighbours(std::int32_t buffer) override;

 private:
  const Sections& sections_;
  Occupancy occupancy_;
  // Computed on first use, because a search asks for few buffers, and kept while memory allows.
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::int32_t> unkept_neighbours_;
  std::int64_t neighbours_kept_ = 0;
};

}  // namespace thimble::plan
