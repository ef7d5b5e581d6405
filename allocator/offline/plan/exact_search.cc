#include "allocator/offline/plan/exact_search.h"

#include <algorithm>
#include <limits>

namespace thimble::plan {
namespace {

constexpr std::int64_t kNoFloor = std::numeric_limits<std::int64_t>::max() / 2;
// Remembered failures: enough for a search of seconds, and at most 6 MiB.
constexpr std::size_t kFailuresPerBuffer = 512;
constexpr std::size_t kMostFailures = std::size_t{1} << 18;
constexpr std::int64_t kNoNoise = 1024;

// Lifetimes may take 64 bits. They are halved until their products with sizes fit.
std::vector<std::int64_t> ScaledDurations(const Problem& problem) {
  constexpr std::uint64_t kLargestProduct = std::uint64_t{1} << 62;
  std::vector<std::uint64_t> durations;
  std::uint64_t longest = 0;
  std::int64_t largest = 1;
  for (const Buffer& buffer : problem.buffers) {
    durations.push_back(static_cast<std::uint64_t>(buffer.upper) -
                        static_cast<std::uint64_t>(buffer.lower));
    longest = std::max(longest, durations.back());
    largest = std::max(largest, buffer.size);
  }
  const std::uint64_t most = kLargestProduct / (2 * kNoNoise * static_cast<std::uint64_t>(largest));
  int shift = 0;
  while (longest >> shift > most) ++shift;
  std::vector<std::int64_t> scaled;
  scaled.reserve(durations.size());
  for (const std::uint64_t duration : durations) {
    scaled.push_back(static_cast<std::int64_t>(duration >> shift));
  }
  return scaled;
}

}  // namespace

ExactSearch::ExactSearch(const Problem& problem, const Sections& sections)
    : problem_(problem),
      spans_(sections.spans()),
      section_count_(sections.count()),
      neighbours_(spans_.size()),
      low_floors_(section_count_),
      failures_(std::min(kMostFailures, kFailuresPerBuffer * spans_.size())) {
  const std::int32_t count = static_cast<std::int32_t>(spans_.size());
  for (std::int32_t a = 0; a < count; ++a) {
    for (std::int32_t b = 0; b < count; ++b) {
      if (a != b && spans_[a].Meets(spans_[b])) neighbours_[a].push_back(b);
    }
  }
  durations_ = ScaledDurations(problem);
  // One level per buffer, and at most one more for each part.
  frames_.resize(2 * spans_.size() + 2);
}

std::uint64_t ExactSearch::StateOf(std::int32_t buffer) const {
  return Random::Mix((static_cast<std::uint64_t>(buffer) + 1) * 0xD6E8FEB86659FD93u +
                     static_cast<std::uint64_t>(floors_[buffer]));
}

Outcome ExactSearch::Run(std::int64_t capacity, const Ranking& ranking, std::uint64_t max_nodes,
                         int noise, Random& random, Budget& budget) {
  const std::size_t count = spans_.size();
  capacity_ = capacity;
  ranking_ = ranking;
  budget_ = &budget;
  nodes_left_ = max_nodes;
  ++runs_;
  noise_.assign(count, kNoNoise);
  if (noise != 0) {
    for (std::int64_t& factor : noise_) factor += random.Below(kNoNoise * noise / 100 + 1);
  }
  is_placed_.assign(count, false);
  floors_.assign(count, 0);
  ranks_.assign(count, 0);
  found_.assign(count, 0);
  unplaced_.assign(section_count_, 0);
  crossing_.assign(section_count_, 0);
  std::vector<std::int32_t> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = static_cast<std::int32_t>(i);
    for (std::int32_t s = spans_[i].first; s < spans_[i].last; ++s) {
      unplaced_[s] += problem_.buffers[i].size;
      if (s + 1 < spans_[i].last) ++crossing_[s];
    }
  }
  if (*std::max_element(unplaced_.begin(), unplaced_.end()) > capacity) return Outcome::kImpossible;
  std::int32_t first = 0;
  for (std::int32_t s = 0; s < section_count_; ++s) {
    if (crossing_[s] != 0) continue;
    const Outcome outcome = SearchPart({first, s + 1}, all, 0);
    if (outcome != Outcome::kFound) return outcome;
    first = s + 1;
  }
  return Outcome::kFound;
}

std::int64_t ExactSearch::TraitOf(std::int32_t buffer, Trait trait) const {
  const std::int64_t size = problem_.buffers[buffer].size * noise_[buffer];
  const Span span = spans_[buffer];
  switch (trait) {
    case Trait::kSize:
      return size;
    case Trait::kDuration:
      return durations_[buffer];
    case Trait::kArea:
      return size * durations_[buffer];
    case Trait::kLength:
      return span.length();
    case Trait::kVolume:
      return size * span.length();
    case Trait::kNeighbours:
      return static_cast<std::int64_t>(neighbours_[buffer].size());
    case Trait::kLoad:
      return *std::max_element(unplaced_.begin() + span.first, unplaced_.begin() + span.last);
  }
  return 0;
}

void ExactSearch::Rank(const std::vector<std::int32_t>& unplaced) {
  using Key = std::array<std::int64_t, std::tuple_size<Ranking>::value + 1>;
  std::vector<Key> keys;
  keys.reserve(unplaced.size());
  for (const std::int32_t i : unplaced) {
    Key key{};
    for (std::size_t k = 0; k < ranking_.size(); ++k) key[k] = TraitOf(i, ranking_[k]);
    key.back() = -i;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    ranks_[-keys[rank].back()] = static_cast<std::int32_t>(rank);
  }
}

Outcome ExactSearch::SearchPart(Span part, const std::vector<std::int32_t>& candidates,
                                std::size_t depth) {
  std::vector<std::int32_t> inside;
  std::uint64_t state = 0;
  for (const std::int32_t i : candidates) {
    if (is_placed_[i] || spans_[i].first < part.first || spans_[i].last > part.last) continue;
    inside.push_back(i);
    state ^= StateOf(i);
  }
  if (inside.empty()) return Outcome::kFound;
  std::vector<std::int32_t> ranks_before;
  ranks_before.reserve(inside.size());
  for (const std::int32_t i : inside) ranks_before.push_back(ranks_[i]);
  Rank(inside);
  // Failures depend on ranks, and ranks on the buffers of the part, so the part salts the state.
  state ^= Random::Mix(state);
  const Outcome outcome = Search(part, inside, {0, -1}, state, depth);
  for (std::size_t k = 0; k < inside.size(); ++k) ranks_[inside[k]] = ranks_before[k];
  return outcome;
}

// Finds the lowest floor that `buffer`, whose turn has passed, can still get. False if no buffer
// can come to lie under it (X3): then it could have been placed at its turn.
bool ExactSearch::LiftFloor(std::int32_t buffer, std::int64_t lowest, std::int64_t& floor) const {
  std::int64_t lowest_begin = kNoFloor;
  std::int64_t lowest_end = kNoFloor;
  for (const std::int32_t i : neighbours_[buffer]) {
    if (is_placed_[i]) continue;
    const std::int64_t begin = std::max(floors_[i], lowest);
    lowest_begin = std::min(lowest_begin, begin);
    lowest_end = std::min(lowest_end, begin + problem_.buffers[i].size);
  }
  if (lowest_begin >= floor + problem_.buffers[buffer].size) return false;
  floor = std::max(floor, lowest_end);
  return floor + problem_.buffers[buffer].size <= capacity_;
}

bool ExactSearch::FindChoices(Span part, Turn after, Frame& frame) {
  std::int64_t lowest_end = kNoFloor;
  for (const std::int32_t i : frame.unplaced) {
    lowest_end = std::min(lowest_end, floors_[i] + problem_.buffers[i].size);
  }
  if (lowest_end <= after.offset) return false;  // X1
  std::fill(low_floors_.begin() + part.first, low_floors_.begin() + part.last, kNoFloor);
  for (const std::int32_t i : frame.unplaced) {
    const Turn turn{floors_[i], ranks_[i]};
    std::int64_t floor = floors_[i];
    if (after < turn) {
      if (floor < lowest_end) frame.choices.push_back({turn, i});
    } else if (!LiftFloor(i, after.offset, floor)) {
      return false;
    }
    for (std::int32_t s = spans_[i].first; s < spans_[i].last; ++s) {
      low_floors_[s] = std::min(low_floors_[s], floor);
    }
  }
  for (std::int32_t s = part.first; s < part.last; ++s) {
    if (unplaced_[s] != 0 && low_floors_[s] + unplaced_[s] > capacity_) return false;
  }
  std::sort(frame.choices.begin(), frame.choices.end(),
            [](const Choice& a, const Choice& b) { return a.turn < b.turn; });
  return true;
}

Outcome ExactSearch::Search(Span part, const std::vector<std::int32_t>& candidates, Turn after,
                            std::uint64_t state, std::size_t depth) {
  Frame& frame = frames_[depth];
  frame.unplaced.clear();
  frame.choices.clear();
  for (const std::int32_t i : candidates) {
    if (!is_placed_[i]) frame.unplaced.push_back(i);
  }
  if (frame.unplaced.empty()) return Outcome::kFound;
  if (nodes_left_ == 0 || !budget_->Spend(32 + 8 * frame.unplaced.size())) return Outcome::kGaveUp;
  --nodes_left_;
  Failure& failure = failures_[state % failures_.size()];
  if (failure.run == runs_ && failure.state == state && !(after < failure.turn)) {
    return Outcome::kImpossible;  // X4
  }
  if (FindChoices(part, after, frame)) {
    for (std::size_t k = 0; k < frame.choices.size(); ++k) {
      const Choice choice = frame.choices[k];
      const Span span = spans_[choice.buffer];
      const std::int64_t size = problem_.buffers[choice.buffer].size;
      const bool is_repetition =
          std::any_of(frame.choices.begin(), frame.choices.begin() + k, [&](const Choice& earlier) {
            const Span other = spans_[earlier.buffer];
            return earlier.turn.offset == choice.turn.offset && other.first == span.first &&
                   other.last == span.last && problem_.buffers[earlier.buffer].size == size;
          });
      if (is_repetition) continue;
      bool was_free = false;
      const Outcome outcome = Try(part, choice, state, depth, was_free);
      if (outcome != Outcome::kImpossible) return outcome;
      if (was_free) break;
    }
  }
  failure = {state, after, runs_};
  return Outcome::kImpossible;
}

Outcome ExactSearch::Try(Span part, const Choice& choice, std::uint64_t state, std::size_t depth,
                         bool& was_free) {
  const std::int32_t buffer = choice.buffer;
  const std::int64_t top = choice.turn.offset + problem_.buffers[buffer].size;
  if (top > capacity_) return Outcome::kImpossible;
  std::vector<Raise>& raises = frames_[depth].raises;
  raises.clear();
  state ^= StateOf(buffer);
  is_placed_[buffer] = true;
  was_free = true;
  bool fits = true;
  for (const std::int32_t i : neighbours_[buffer]) {
    if (is_placed_[i]) continue;
    was_free = false;
    if (floors_[i] >= top) continue;
    if (top + problem_.buffers[i].size > capacity_) {
      fits = false;
      break;
    }
    state ^= StateOf(i);
    raises.push_back({i, floors_[i]});
    floors_[i] = top;
    state ^= StateOf(i);
  }
  for (std::int32_t s = spans_[buffer].first; s < spans_[buffer].last; ++s) {
    unplaced_[s] -= problem_.buffers[buffer].size;
    fits = fits && unplaced_[s] + top <= capacity_;
  }
  const Outcome outcome = fits ? Descend(part, choice, state, depth) : Outcome::kImpossible;
  was_free = was_free && fits;
  for (std::int32_t s = spans_[buffer].first; s < spans_[buffer].last; ++s) {
    unplaced_[s] += problem_.buffers[buffer].size;
  }
  for (const Raise& raise : frames_[depth].raises) floors_[raise.buffer] = raise.floor;
  is_placed_[buffer] = false;
  return outcome;
}

// Continues with `choice` placed. If that was the last buffer to span two sections, searches one
// part after the other.
Outcome ExactSearch::Descend(Span part, const Choice& choice, std::uint64_t state,
                             std::size_t depth) {
  const Span span = spans_[choice.buffer];
  Frame& frame = frames_[depth];
  found_[choice.buffer] = choice.turn.offset;
  frame.cuts.clear();
  for (std::int32_t s = span.first; s + 1 < span.last; ++s) {
    if (--crossing_[s] == 0) frame.cuts.push_back(s + 1);
  }
  Outcome outcome = Outcome::kFound;
  if (frame.cuts.empty()) {
    outcome = Search(part, frame.unplaced, choice.turn, state, depth + 1);
  } else {
    frame.cuts.push_back(part.last);
    std::int32_t first = part.first;
    for (std::size_t k = 0; k < frame.cuts.size() && outcome == Outcome::kFound; ++k) {
      outcome = SearchPart({first, frame.cuts[k]}, frame.unplaced, depth + 1);
      first = frame.cuts[k];
    }
  }
  for (std::int32_t s = span.first; s + 1 < span.last; ++s) ++crossing_[s];
  return outcome;
}

}  // namespace thimble::plan
