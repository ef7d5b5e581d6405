// Who asks for memory again and again, and who is there at the same time.
//
// A seat stands for one request that recurs: "the second time in a step that op conv1 asks for
// 4 MiB". A request finds its seat by who asks (key and size) and by its occurrence, counted anew
// when that asker comes with a new step. Without a step, or while that seat is still taken, it is
// the lowest free seat of the same asker. The order in which different askers come plays no part:
// TensorFlow's executor changes it from step to step.
//
// For every seat the table remembers which others were ever taken when it was: its conflicts, one
// bit per pair. Seats of steps that never meet (training and evaluation, one sequence length and
// another) have none, and so may share their bytes in a plan.
//
// Invariants (CheckInvariants() proves them):
//   Q1  Askers and seats name each other, and a seat is taken or in its asker's list of free ones.
//   Q2  taken() and taken_bytes() are sums over taken seats, peak_bytes() is not less.
//   Q3  Any two seats that are taken now are in conflict.
//
// At most kMaxSeats seats: 32 MiB of conflicts and some 2 MiB beside them.
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
#include "allocator/plan/floor.h"
#include "allocator/plan/plan_file.h"

namespace thimble {

using SeatId = std::uint32_t;
inline constexpr SeatId kNoSeat = ~SeatId{0};

// Whether two seats were ever taken at once: a symmetric matrix of bits.
class SeatConflicts {
 public:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;

  bool Has(SeatId a, SeatId b) const {
    return (words_[a * row_words_ + b / kBits] >> b % kBits & 1) != 0;
  }
  void Add(SeatId a, SeatId b) {
    Row(a)[b / kBits] |= Word{1} << b % kBits;
    Row(b)[a / kBits] |= Word{1} << a % kBits;
  }
  // With all of `taken`, a row of bits. How many of these conflicts are new.
  std::uint64_t Add(SeatId id, const std::vector<Word>& taken);

  std::size_t row_words() const { return row_words_; }
  void AddRow() { words_.resize(words_.size() + row_words_, 0); }
  void Widen(std::size_t row_words);
  void ClearRow(SeatId id);
  // Forgets the others in every row.
  void KeepColumns(const std::vector<Word>& columns);

 private:
  Word* Row(SeatId id) { return words_.data() + id * row_words_; }

  std::size_t row_words_ = 0;
  std::vector<Word> words_;
};

// Where a plan wants a seat to be.
struct Place {
  Bytes offset = kNoPlace;
  Floor::Cells cells;
};

struct alignas(64) Seat {
  Bytes bytes = 0;        // 0: no seat has this id now
  std::uint64_t key = 0;  // with `bytes`, who asks
  std::uint64_t met = 0;  // the sum of all that were taken when it was last, none of which is new
  std::uint32_t taken_in = 0;    // season in which it was taken last
  std::uint32_t vacated_in = 0;  // season in which it was vacated last
  std::uint32_t uses = 0;
  SeatId next = kNoSeat;  // the one that was taken after it last time: most likely again
  std::uint16_t asker = 0;
  std::uint16_t rank = 0;  // among the seats of its asker
  bool taken = false;
  bool restored = false;
  bool sat_here = false;  // it was taken since it has its place
  Place place;
};
static_assert(sizeof(Seat) == 64, "one seat, one cache line");

class SeatTable {
 public:
  static constexpr std::uint32_t kMaxSeats = 16384;
  static_assert(kMaxSeats <= 1 << 16, "askers and ranks have 16 bits");
  static constexpr std::uint32_t kOften = 2;  // uses that make a seat one that recurs

  // The seat of a request, which is taken now. kNoSeat if the table is full. `step` is 0 if it is
  // not known; `season` is kept with the seat.
  SeatId Take(std::uint64_t key, std::uint64_t step, Bytes bytes, std::uint32_t season);
  void Vacate(SeatId id, std::uint32_t season) {
    Seat& seat = seats_[id];
    seat.taken = false;
    seat.vacated_in = season;
    askers_[seat.asker].free[seat.rank / kBits] |= Word{1} << seat.rank % kBits;
    taken_[id / kBits] &= ~(Word{1} << id % kBits);
    taken_sum_ -= Weight(id);
    --taken_count_;
    taken_bytes_ -= seat.bytes;
  }
  // The request that took `id`, the last one so far, came to nothing.
  void Undo(SeatId id);

  // Seats that nobody has taken yet, in an empty table, with ids in this order: those that recur
  // were used often enough for that.
  void Restore(const Learned& learned);
  // Calls visit(id) for the seats of every asker, by rank.
  template <typename Visit>
  void ForEachByRank(Visit visit) const {
    for (const Asker& asker : askers_) std::for_each(asker.seats.begin(), asker.seats.end(), visit);
  }

  // Forgets askers none of whose seats is taken or was in `season` or later. Ids of other seats
  // stay.
  void ForgetBefore(std::uint32_t season);

  const Seat& seat(SeatId id) const { return seats_[id]; }
  Place& place(SeatId id) { return seats_[id].place; }
  void SetPlace(SeatId id, Bytes offset) {
    seats_[id].place.offset = offset;
    seats_[id].sat_here = false;
  }
  // It is taken at its place. Whether it was so before.
  bool MarkSatHere(SeatId id) { return std::exchange(seats_[id].sat_here, true); }
  bool Exists(SeatId id) const { return id < seats_.size() && seats_[id].bytes != 0; }
  SeatId end() const { return static_cast<SeatId>(seats_.size()); }  // ids are below it
  std::uint32_t size() const { return size_; }
  std::uint32_t taken() const { return taken_count_; }
  const SeatConflicts& conflicts() const { return conflicts_; }

  // How much was new, ever: a table that has seen everything stands still.
  std::uint64_t new_seats() const { return new_seats_; }
  std::uint64_t new_conflicts() const { return new_conflicts_; }

  // How often a seat was taken that was restored as one that recurs.
  std::uint64_t restored_uses() const { return restored_uses_; }

  Bytes taken_bytes() const { return taken_bytes_; }
  Bytes peak_bytes() const { return peak_bytes_; }
  void ResetPeak() { peak_bytes_ = taken_bytes_; }

  void CheckInvariants() const;  // O(seats^2)

 private:
  using Word = SeatConflicts::Word;
  static constexpr std::size_t kBits = SeatConflicts::kBits;

  struct alignas(64) Asker {  // none has this index now if it has no seats
    std::uint64_t step = 0;
    std::uint32_t occurrence = 0;  // how often it has asked in `step`
    // Most askers have one seat: no more memory to look at than this cache line.
    absl::InlinedVector<SeatId, 2> seats;  // by rank
    absl::InlinedVector<Word, 1> free;     // bit r: the seat of rank r is free
  };

  static std::uint64_t Weight(SeatId id) {
    std::uint64_t weight = (id + std::uint64_t{1}) * 0x9E3779B97F4A7C15u;
    weight ^= weight >> 32;
    return weight * 0xD6E8FEB86659FD93u;
  }

  static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
  static std::uint32_t FirstFree(const Asker& asker, std::uint32_t from);

  static constexpr std::uint32_t kNoAsker = ~std::uint32_t{0};
  std::uint32_t FindAsker(std::uint64_t key, Bytes bytes);
  SeatId AddSeat(std::uint32_t asker, std::uint64_t key, Bytes bytes);

  absl::flat_hash_map<std::pair<std::uint64_t, Bytes>, std::uint32_t> asker_of_;
  std::vector<Asker> askers_;
  std::vector<std::uint32_t> unused_askers_;
  std::vector<Seat> seats_;
  std::vector<SeatId> unused_seats_;
  std::vector<Word> taken_;  // one bit per seat, as many words as a row of conflicts
  std::uint64_t taken_sum_ =
      0;  // of the weights of these: two sets never have the same in practice
  SeatConflicts conflicts_;
  SeatId last_ = kNoSeat;  // to be taken
  std::uint32_t size_ = 0;
  std::uint32_t taken_count_ = 0;
  std::uint64_t new_seats_ = 0;
  std::uint64_t new_conflicts_ = 0;
  std::uint64_t restored_uses_ = 0;
  Bytes taken_bytes_ = 0;
  Bytes peak_bytes_ = 0;
};

}  // namespace thimble
