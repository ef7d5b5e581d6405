// Recurring requests, and which of them are in use at the same time.
//
// A site is one recurring request, identified by its caller and its occurrence within the step:
// "the second time in a step that op conv1 asks for 4 MiB". A caller is a key with a size. The
// count of its occurrences starts anew in each step. If the step is unknown, or the site is still
// taken, a request gets the lowest free site of its caller. The order of different callers does not
// matter: TensorFlow's executor changes it from step to step.
//
// For every site the table remembers which others were ever taken at the same time: its conflicts,
// one bit per pair. Sites of different kinds of steps (training and evaluation, two sequence
// lengths) have no conflicts, so they may share their bytes in a plan.
//
// Invariants (CheckInvariants() proves them):
//   Q1  Callers and sites name each other. A site is taken or in its caller's list of free ones.
//   Q2  taken() and taken_bytes() are sums over taken sites; peak_bytes() is not less.
//   Q3  Any two sites that are taken now are in conflict.
//
// At most kMaxSites sites: 32 MiB of conflicts and some 2 MiB beside them.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "allocator/base/bytes.h"
#include "allocator/plan/plan_area.h"
#include "allocator/plan/plan_file.h"

namespace thimble {

using SiteId = std::uint32_t;
inline constexpr SiteId kNoSite = ~SiteId{0};

// Whether two sites were ever taken at the same time: a symmetric matrix of bits.
class SiteConflicts {
 public:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;

  bool Has(SiteId a, SiteId b) const {
    return (words_[a * row_words_ + b / kBits] >> b % kBits & 1) != 0;
  }
  void Add(SiteId a, SiteId b) {
    Row(a)[b / kBits] |= Word{1} << b % kBits;
    Row(b)[a / kBits] |= Word{1} << a % kBits;
  }
  // Adds conflicts with all sites of `taken`, a row of bits. Returns how many are new.
  std::uint64_t Add(SiteId id, const std::vector<Word>& taken);

  std::size_t row_words() const { return row_words_; }
  void AddRow() { words_.resize(words_.size() + row_words_, 0); }
  void Widen(std::size_t row_words);
  void ClearRow(SiteId id);
  // Clears all other columns in every row.
  void KeepColumns(const std::vector<Word>& columns);

 private:
  Word* Row(SiteId id) { return words_.data() + id * row_words_; }

  std::size_t row_words_ = 0;
  std::vector<Word> words_;
};

// The place of a site in a plan.
struct Place {
  Bytes offset = kNoPlace;
  PlanArea::Cells cells;
};

struct alignas(64) Site {
  Bytes bytes = 0;        // 0: no site has this id
  std::uint64_t key = 0;  // with `bytes`, the caller
  std::uint64_t met = 0;  // taken_sum_ when it was last taken: the same sum brings no new conflict
  std::uint32_t taken_in = 0;    // round in which it was taken last
  std::uint32_t vacated_in = 0;  // round in which it was vacated last
  std::uint32_t uses = 0;
  SiteId next = kNoSite;  // the site that was taken after it last time, and probably will be again
  std::uint16_t caller = 0;
  std::uint16_t rank = 0;  // among the sites of its caller
  bool taken = false;
  bool restored = false;
  bool used_here = false;  // taken at its current place before
  Place place;
};
static_assert(sizeof(Site) == 64, "one site, one cache line");

class SiteTable {
 public:
  static constexpr std::uint32_t kMaxSites = 16384;
  static_assert(kMaxSites <= 1 << 16, "callers and ranks have 16 bits");
  static constexpr std::uint32_t kOften = 2;  // uses that make a site recurring

  // Takes the site of a request. kNoSite if the table is full. `step` is 0 if it is unknown; the
  // site remembers `round`.
  SiteId Take(std::uint64_t key, std::uint64_t step, Bytes bytes, std::uint32_t round);
  void Vacate(SiteId id, std::uint32_t round) {
    Site& site = sites_[id];
    site.taken = false;
    site.vacated_in = round;
    callers_[site.caller].free[site.rank / kBits] |= Word{1} << site.rank % kBits;
    taken_[id / kBits] &= ~(Word{1} << id % kBits);
    taken_sum_ -= Weight(id);
    --taken_count_;
    taken_bytes_ -= site.bytes;
  }
  // Reverts Take() after the request failed. `id` must be the site that was taken last.
  void Undo(SiteId id);

  // Fills an empty table with free sites, whose ids follow this order. Those that recur count as
  // used kOften times.
  void Restore(const Learned& learned);
  // Calls visit(id) for the sites of every caller, by rank.
  template <typename Visit>
  void ForEachByRank(Visit visit) const {
    for (const Caller& caller : callers_)
      std::for_each(caller.sites.begin(), caller.sites.end(), visit);
  }

  // Forgets every caller whose sites are all free and were not taken in `round` or later. Other
  // sites keep their ids.
  void ForgetBefore(std::uint32_t round);

  const Site& site(SiteId id) const { return sites_[id]; }
  Place& place(SiteId id) { return sites_[id].place; }
  void SetPlace(SiteId id, Bytes offset) {
    sites_[id].place.offset = offset;
    sites_[id].used_here = false;
  }
  // The site was taken at its place. Returns whether it was before.
  bool MarkUsedHere(SiteId id) { return std::exchange(sites_[id].used_here, true); }
  bool Exists(SiteId id) const { return id < sites_.size() && sites_[id].bytes != 0; }
  SiteId end() const { return static_cast<SiteId>(sites_.size()); }  // ids are below it
  std::uint32_t size() const { return size_; }
  std::uint32_t taken() const { return taken_count_; }
  const SiteConflicts& conflicts() const { return conflicts_; }

  // Counters that never fall. They stand still once the table has seen everything.
  std::uint64_t new_sites() const { return new_sites_; }
  std::uint64_t new_conflicts() const { return new_conflicts_; }

  // How often a site that was restored as recurring was taken.
  std::uint64_t restored_uses() const { return restored_uses_; }

  Bytes taken_bytes() const { return taken_bytes_; }
  Bytes peak_bytes() const { return peak_bytes_; }
  void ResetPeak() { peak_bytes_ = taken_bytes_; }

  void CheckInvariants() const;  // O(sites^2)

 private:
  using Word = SiteConflicts::Word;
  static constexpr std::size_t kBits = SiteConflicts::kBits;

  struct alignas(64) Caller {  // unused if it has no sites
    std::uint64_t step = 0;
    std::uint32_t occurrence = 0;  // number of its requests so far in `step`
    // Most callers have one site and fit in this cache line.
    absl::InlinedVector<SiteId, 2> sites;  // by rank
    absl::InlinedVector<Word, 1> free;     // bit r: the site of rank r is free
  };

  static std::uint64_t Weight(SiteId id) {
    std::uint64_t weight = (id + std::uint64_t{1}) * 0x9E3779B97F4A7C15u;
    weight ^= weight >> 32;
    return weight * 0xD6E8FEB86659FD93u;
  }

  static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
  static std::uint32_t FirstFree(const Caller& caller, std::uint32_t from);

  static constexpr std::uint32_t kNoCaller = ~std::uint32_t{0};
  std::uint32_t FindCaller(std::uint64_t key, Bytes bytes);
  SiteId AddSite(std::uint32_t caller, std::uint64_t key, Bytes bytes);

  absl::flat_hash_map<std::pair<std::uint64_t, Bytes>, std::uint32_t> caller_of_;
  std::vector<Caller> callers_;
  std::vector<std::uint32_t> unused_callers_;
  std::vector<Site> sites_;
  std::vector<SiteId> unused_sites_;
  std::vector<Word> taken_;      // one bit per site, as many words as a row of conflicts
  std::uint64_t taken_sum_ = 0;  // of their weights: in practice different for any two sets
  SiteConflicts conflicts_;
  SiteId last_ = kNoSite;  // to be taken
  std::uint32_t size_ = 0;
  std::uint32_t taken_count_ = 0;
  std::uint64_t new_sites_ = 0;
  std::uint64_t new_conflicts_ = 0;
  std::uint64_t restored_uses_ = 0;
  Bytes taken_bytes_ = 0;
  Bytes peak_bytes_ = 0;
};

}  // namespace thimble
