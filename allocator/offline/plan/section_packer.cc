#include "allocator/offline/plan/section_packer.h"

#include <algorithm>
#include <numeric>

namespace thimble::plan {

SectionPacker::SectionPacker(const Problem& problem, const Sections& sections)
    : sections_(sections), occupancy_(sections.count()), neighbours_(problem.buffers.size()) {
  const std::vector<std::int64_t> loads = sections.PeakLoads();
  lower_bound_ = sections.max_load();
  unit_ = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const std::int64_t size = problem.buffers[i].size;
    unit_ = std::gcd(unit_, size);
    sizes_.push_back(size);
    traits_.size.push_back(Log2(size));
    traits_.length.push_back(Log2(sections.spans()[i].length()));
    traits_.load.push_back(Log2(loads[i]));
  }
  fixed_.assign(sizes_.size(), kNowhere);
}

bool SectionPacker::Pack(const std::vector<std::int32_t>& order, Fit fit, std::int64_t cutoff,
                         Budget& budget, Packing& packing) {
  constexpr std::uint64_t kWorkPerBuffer = 256;
  occupancy_.Clear();
  packing.offsets = fixed_;
  packing.height = 0;
  for (const std::int32_t i : order) {
    const Span span = sections_.spans()[i];
    const std::int64_t size = sizes_[i];
    const std::int64_t offset =
        fit == Fit::kFirst ? occupancy_.FirstFit(span, size) : occupancy_.BestFit(span, size);
    packing.offsets[i] = offset;
    packing.height = std::max(packing.height, offset + size);
    if (packing.height >= cutoff || !budget.Spend(kWorkPerBuffer)) return false;
    occupancy_.Take(span, offset, offset + size);
  }
  return true;
}

const std::vector<std::int32_t>& SectionPacker::Neighbours(std::int32_t buffer) {
  constexpr std::int64_t kMostKept = std::int64_t{1} << 26;  // 256 MiB
  if (!neighbours_[buffer].empty()) return neighbours_[buffer];
  const bool keep = neighbours_kept_ < kMostKept;
  std::vector<std::int32_t>& list = keep ? neighbours_[buffer] : unkept_neighbours_;
  list.clear();
  const std::vector<Span>& spans = sections_.spans();
  const Span span = spans[buffer];
  for (std::int32_t i = 0; i < count(); ++i) {
    if (spans[i].Meets(span) && i != buffer) list.push_back(i);
  }
  if (keep) neighbours_kept_ += static_cast<std::int64_t>(list.size());
  return list;
}

}  // namespace thimble::plan
