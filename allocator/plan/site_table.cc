#include "allocator/plan/site_table.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace thimble {

// --- SiteConflicts -----------------------------------------------------------------------------

void SiteConflicts::Widen(std::size_t row_words) {
  const std::size_t rows = row_words_ == 0 ? 0 : words_.size() / row_words_;
  std::vector<Word> wider(rows * row_words, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(&words_[row * row_words_], row_words_, &wider[row * row_words]);
  }
  words_ = std::move(wider);
  row_words_ = row_words;
}

inline std::uint64_t SiteConflicts::Add(SiteId id, const std::vector<Word>& taken) {
  Word* const row = Row(id);
  Word fresh = 0;
  for (std::size_t i = 0; i < row_words_; ++i) fresh |= taken[i] & ~row[i];
  if (fresh == 0) return 0;  // as nearly always
  std::uint64_t added = 0;
  for (std::size_t i = 0; i < row_words_; ++i) {
    for (fresh = taken[i] & ~row[i]; fresh != 0; fresh &= fresh - 1) {
      const auto other =
          static_cast<SiteId>(i * kBits) + static_cast<SiteId>(__builtin_ctzll(fresh));
      Add(id, other);
      ++added;
    }
  }
  return added;
}

void SiteConflicts::ClearRow(SiteId id) { std::fill_n(Row(id), row_words_, 0); }

void SiteConflicts::KeepColumns(const std::vector<Word>& columns) {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    words_[word] &= columns[word % row_words_];
  }
}

// --- SiteTable ---------------------------------------------------------------------------------

inline std::uint32_t SiteTable::FirstFree(const Caller& caller, std::uint32_t from) {
  for (std::size_t word = from / kBits; word < caller.free.size(); ++word) {
    Word bits = caller.free[word];
    if (word == from / kBits) bits &= ~Word{0} << from % kBits;
    if (bits != 0) {
      return static_cast<std::uint32_t>(word * kBits) +
             static_cast<std::uint32_t>(__builtin_ctzll(bits));
    }
  }
  return kNoRank;
}

// kNoCaller if it is new and no site is left.
inline std::uint32_t SiteTable::FindCaller(std::uint64_t key, Bytes bytes) {
  if (last_ != kNoSite && sites_[last_].next != kNoSite) {
    const Site& guess = sites_[sites_[last_].next];
    if (guess.key == key && guess.bytes == bytes) return guess.caller;
  }
  if (size_ == kMaxSites) {
    const auto found = caller_of_.find({key, bytes});
    return found == caller_of_.end() ? kNoCaller : found->second;
  }
  const auto [found, is_new] =
      caller_of_.try_emplace({key, bytes}, static_cast<std::uint32_t>(callers_.size()));
  if (!is_new) return found->second;
  if (unused_callers_.empty()) {
    callers_.emplace_back();
  } else {
    found->second = unused_callers_.back();
    unused_callers_.pop_back();
  }
  return found->second;
}

SiteId SiteTable::Take(std::uint64_t key, std::uint64_t step, Bytes bytes, std::uint32_t round) {
  const std::uint32_t index = FindCaller(key, bytes);
  if (index == kNoCaller) return kNoSite;
  Caller& caller = callers_[index];
  std::uint32_t wanted = 0;
  if (step != 0) {
    if (caller.step != step) {
      caller.step = step;
      caller.occurrence = 0;
    }
    wanted = caller.occurrence++;
  }
  const std::uint32_t rank = FirstFree(caller, wanted);
  const SiteId id = rank == kNoRank ? AddSite(index, key, bytes) : caller.sites[rank];
  if (id == kNoSite) return kNoSite;
  Site& site = sites_[id];
  caller.free[site.rank / kBits] &= ~(Word{1} << site.rank % kBits);
  site.taken = true;
  site.taken_in = round;
  if (site.restored) ++restored_uses_;
  ++site.uses;
  ++taken_count_;
  taken_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, taken_bytes_);
  if (site.met != taken_sum_) {  // other sites are taken than last time
    new_conflicts_ += conflicts_.Add(id, taken_);
    site.met = taken_sum_;
  }
  taken_[id / kBits] |= Word{1} << id % kBits;
  taken_sum_ += Weight(id);
  if (last_ != kNoSite) sites_[last_].next = id;
  last_ = id;
  if (site.next != kNoSite) __builtin_prefetch(&sites_[site.next]);
  return id;
}

void SiteTable::Undo(SiteId id) {
  Caller& caller = callers_[sites_[id].caller];
  if (caller.occurrence > 0) --caller.occurrence;
  Vacate(id, sites_[id].taken_in);
}

SiteId SiteTable::AddSite(std::uint32_t index, std::uint64_t key, Bytes bytes) {
  if (size_ == kMaxSites) return kNoSite;
  SiteId id = static_cast<SiteId>(sites_.size());
  if (unused_sites_.empty()) {
    if (sites_.size() == conflicts_.row_words() * kBits) {
      conflicts_.Widen(std::max<std::size_t>(2 * conflicts_.row_words(), 4));
      taken_.resize(conflicts_.row_words(), 0);
    }
    sites_.emplace_back();
    conflicts_.AddRow();
  } else {
    id = unused_sites_.back();
    unused_sites_.pop_back();
  }
  Caller& caller = callers_[index];
  Site& site = sites_[id];
  site = {};
  site.bytes = bytes;
  site.key = key;
  site.caller = static_cast<std::uint16_t>(index);
  site.rank = static_cast<std::uint16_t>(caller.sites.size());
  caller.sites.push_back(id);
  if (caller.free.size() * kBits < caller.sites.size()) caller.free.push_back(0);
  ++size_;
  ++new_sites_;
  return id;
}

void SiteTable::Restore(const Learned& learned) {
  for (SiteId id = 0; id < learned.sites.size(); ++id) {
    const LearnedSite& site = learned.sites[id];
    AddSite(FindCaller(site.key, site.bytes), site.key, site.bytes);
    sites_[id].uses = site.recurs ? kOften : 0;
    sites_[id].restored = site.recurs;
    callers_[sites_[id].caller].free[sites_[id].rank / kBits] |= Word{1} << sites_[id].rank % kBits;
    for (SiteId other = 0; other < id; ++other) {
      if (learned.AreInConflict(id, other)) conflicts_.Add(id, other);
    }
  }
}

void SiteTable::ForgetBefore(std::uint32_t round) {
  std::vector<Word> kept(conflicts_.row_words(), ~Word{0});
  for (std::uint32_t index = 0; index < callers_.size(); ++index) {
    Caller& caller = callers_[index];
    const auto is_needed = [&](SiteId id) {
      return sites_[id].taken || std::max(sites_[id].taken_in, sites_[id].vacated_in) >= round;
    };
    if (caller.sites.empty()) continue;
    if (std::any_of(caller.sites.begin(), caller.sites.end(), is_needed)) continue;
    const Site& any = sites_[caller.sites[0]];
    caller_of_.erase({any.key, any.bytes});
    for (const SiteId id : caller.sites) {
      kept[id / kBits] &= ~(Word{1} << id % kBits);
      conflicts_.ClearRow(id);
      sites_[id] = {};
      unused_sites_.push_back(id);
      --size_;
    }
    caller.step = 0;
    caller.sites.clear();
    caller.free.clear();
    unused_callers_.push_back(index);
  }
  conflicts_.KeepColumns(kept);
  // A new site may get the number of a forgotten one: sums must not be trusted.
  for (Site& site : sites_) site.met = ~std::uint64_t{0};
}

void SiteTable::CheckInvariants() const {
  Bytes taken_bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t taken_count = 0;
  for (SiteId id = 0; id < sites_.size(); ++id) {
    const Site& site = sites_[id];
    const bool bit = (taken_[id / kBits] >> id % kBits & 1) != 0;
    THIMBLE_CHECK(site.taken == bit, "Q1: a site and the set of taken ones disagree");
    if (site.bytes == 0) continue;
    ++count;
    const Caller& caller = callers_[site.caller];
    THIMBLE_CHECK(caller.sites[site.rank] == id, "Q1: a site is not one of its caller's");
    THIMBLE_CHECK(caller_of_.at({site.key, site.bytes}) == site.caller,
                  "Q1: a site is not one of its caller's");
    THIMBLE_CHECK((caller.free[site.rank / kBits] >> site.rank % kBits & 1) != (site.taken ? 1 : 0),
                  "Q1: a site is both taken and free, or neither");
    if (!site.taken) continue;
    ++taken_count;
    taken_bytes += site.bytes;
    for (SiteId other = 0; other < id; ++other) {
      THIMBLE_CHECK(!sites_[other].taken || conflicts_.Has(id, other),
                    "Q3: two sites are taken at once and not in conflict");
    }
  }
  THIMBLE_CHECK(count == size_, "Q1: the number of sites is wrong");
  THIMBLE_CHECK(
      taken_count == taken_count_ && taken_bytes == taken_bytes_ && peak_bytes_ >= taken_bytes_,
      "Q2: a sum is wrong");
}

}  // namespace thimble
