#include "allocator/plan/plan_area.h"

#include <utility>

namespace thimble {

void PlanArea::Reset(std::vector<Bytes> borders) {
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  borders_ = std::move(borders);
  open_.assign(borders_.empty() ? 0 : borders_.size() - 1, kClosed);
}

std::uint32_t PlanArea::IndexOf(Bytes border) const {
  const auto found = std::lower_bound(borders_.begin(), borders_.end(), border);
  return static_cast<std::uint32_t>(found - borders_.begin());
}

std::optional<std::uint32_t> PlanArea::AddBorder(Bytes at) {
  const std::uint32_t index = IndexOf(at);
  if (index < borders_.size() && borders_[index] == at) return std::nullopt;
  if (!borders_.empty()) {
    const bool splits = index > 0 && index < borders_.size();
    const auto cell = std::min<std::ptrdiff_t>(index, open_.end() - open_.begin());
    open_.insert(open_.begin() + cell, splits ? open_[index - 1] : kClosed);
  }
  borders_.insert(borders_.begin() + index, at);
  return index;
}

PlanArea::Cells PlanArea::NextClosed(Cells cells) const {
  const auto end = open_.begin() + cells.end;
  const auto first = std::find(open_.begin() + cells.begin, end, kClosed);
  const auto last = std::find(first, end, kOpen);
  return {static_cast<std::uint32_t>(first - open_.begin()),
          static_cast<std::uint32_t>(last - open_.begin())};
}

Bytes PlanArea::OpenBytes() const {
  Bytes open = 0;
  for (std::size_t cell = 0; cell < open_.size(); ++cell) {
    if (open_[cell] == kOpen) open += borders_[cell + 1] - borders_[cell];
  }
  return open;
}

}  // namespace thimble
