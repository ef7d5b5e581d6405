#include "allocator/plan/clique_bound.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace thimble::plan {
namespace {

constexpr std::size_t kMostSums = 256;
constexpr std::uint64_t kMostWork = 4'000'000;  // in units of a nanosecond or two

// All sums of subsets of the sizes added, up to the longest gap.
class SubsetSums {
 public:
  explicit SubsetSums(std::int64_t longest) : known_(longest) {}

  void Add(std::int64_t size) {
    grown_.clear();
    std::size_t next = 0;  // index in the sums without `size`
    for (const std::int64_t without : sums_) {
      const std::int64_t with = without + size;
      while (next < sums_.size() && sums_[next] < with) grown_.push_back(sums_[next++]);
      if (with > known_) break;
      if (next == sums_.size() || sums_[next] != with) grown_.push_back(with);
    }
    grown_.insert(grown_.end(), sums_.begin() + static_cast<std::ptrdiff_t>(next), sums_.end());
    // Beyond kMostSums sums, assume that a gap can be filled.
    if (grown_.size() > kMostSums) {
      grown_.resize(kMostSums);
      known_ = grown_.back();
    }
    std::swap(sums_, grown_);
  }

  // The most of a gap that a subset can fill.
  std::int64_t MostIn(std::int64_t gap) const {
    return gap > known_ ? gap : *(std::upper_bound(sums_.begin(), sums_.end(), gap) - 1);
  }

  std::size_t count() const { return sums_.size(); }

 private:
  std::int64_t known_;                    // sums_ is complete up to here
  std::vector<std::int64_t> sums_ = {0};  // rising
  std::vector<std::int64_t> grown_;       // scratch
};

class Cliques {
 public:
  explicit Cliques(const ConflictProblem& problem)
      : problem_(problem), covered_(problem.sizes.size()), common_(Words()) {
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
      const bool is_fixed = !problem.fixed.empty() && problem.fixed[i] != kNotFixed;
      (is_fixed ? fixed_ : by_size_).push_back(static_cast<std::int32_t>(i));
    }
    std::stable_sort(by_size_.begin(), by_size_.end(), [&](std::int32_t a, std::int32_t b) {
      return problem.sizes[a] > problem.sizes[b];
    });
    std::stable_sort(fixed_.begin(), fixed_.end(), [&](std::int32_t a, std::int32_t b) {
      return problem.fixed[a] < problem.fixed[b];
    });
  }

  // Starts each clique with the largest buffer that is in none yet.
  std::int64_t BestBound() {
    std::int64_t best = 0;
    for (const std::int32_t first : by_size_) {
      if (covered_[first] != 0) continue;
      if (work_ > kMostWork) break;
      Grow(first);
      FindGaps();
      best = std::max(best, BoundOfSizes());
    }
    return best;
  }

 private:
  std::size_t Words() const { return problem_.conflicts.words_per_row(); }

  bool IsCommon(std::int32_t buffer) const {
    return ((common_[buffer / 64] >> (buffer % 64)) & 1) != 0;
  }

  void Join(std::int32_t buffer) {
    const std::uint64_t* const row = problem_.conflicts.Row(buffer);
    for (std::size_t w = 0; w < Words(); ++w) common_[w] &= row[w];
    sizes_.push_back(problem_.sizes[buffer]);
    covered_[buffer] = 1;
    work_ += Words();
  }

  void Grow(std::int32_t first) {
    sizes_.clear();
    std::fill(common_.begin(), common_.end(), ~std::uint64_t{0});
    Join(first);
    for (const std::int32_t i : by_size_) {
      if (IsCommon(i)) Join(i);
    }
    std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
    work_ += by_size_.size();
  }

  // Finds the gaps between the fixed buffers that conflict with all of the clique.
  void FindGaps() {
    gaps_.clear();
    top_ = 0;
    for (const std::int32_t i : fixed_) {
      if (!IsCommon(i)) continue;
      if (problem_.fixed[i] > top_) gaps_.push_back(problem_.fixed[i] - top_);
      top_ = std::max(top_, problem_.fixed[i] + problem_.sizes[i]);
    }
    work_ += fixed_.size();
  }

  // Part of a clique is a clique, too. Without its small buffers the bound may be higher: here one
  // buffer may count for several gaps, so small ones seem to fill them all.
  std::int64_t BoundOfSizes() {
    std::int64_t best = 0;
    std::int64_t total = 0;
    SubsetSums sums(gaps_.empty() ? 0 : *std::max_element(gaps_.begin(), gaps_.end()));
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      total += sizes_[k];
      sums.Add(sizes_[k]);
      work_ += 2 * sums.count();
      if (k + 1 < sizes_.size() && sizes_[k + 1] == sizes_[k]) continue;
      std::int64_t above = total;
      for (const std::int64_t gap : gaps_) above -= sums.MostIn(gap);
      best = std::max(best, top_ + std::max<std::int64_t>(above, 0));
      work_ += 8 * gaps_.size();
    }
    return best;
  }

  const ConflictProblem& problem_;
  std::vector<std::int32_t> by_size_;  // movable ones, the largest first
  std::vector<std::int32_t> fixed_;    // by offset
  std::vector<std::uint8_t> covered_;  // by buffer: whether it is in a clique
  std::uint64_t work_ = 0;

  // The clique at hand:
  std::vector<std::uint64_t> common_;  // neighbours of all members
  std::vector<std::int64_t> sizes_;    // falling
  std::vector<std::int64_t> gaps_;
  std::int64_t top_ = 0;  // of the fixed buffers around it
};

}  // namespace

std::int64_t CliqueBound(const ConflictProblem& problem) { return Cliques(problem).BestBound(); }

}  // namespace thimble::plan
