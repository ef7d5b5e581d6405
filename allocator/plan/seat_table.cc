#include "allocator/plan/seat_table.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace thimble {

// --- SeatConflicts -----------------------------------------------------------------------------

void SeatConflicts::Widen(std::size_t row_words) {
  const std::size_t rows = row_words_ == 0 ? 0 : words_.size() / row_words_;
  std::vector<Word> wider(rows * row_words, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(&words_[row * row_words_], row_words_, &wider[row * row_words]);
  }
  words_ = std::move(wider);
  row_words_ = row_words;
}

inline std::uint64_t SeatConflicts::Add(SeatId id, const std::vector<Word>& taken) {
  Word* const row = Row(id);
  Word fresh = 0;
  for (std::size_t i = 0; i < row_words_; ++i) fresh |= taken[i] & ~row[i];
  if (fresh == 0) return 0;  // as nearly always
  std::uint64_t added = 0;
  for (std::size_t i = 0; i < row_words_; ++i) {
    for (fresh = taken[i] & ~row[i]; fresh != 0; fresh &= fresh - 1) {
      const auto other =
          static_cast<SeatId>(i * kBits) + static_cast<SeatId>(__builtin_ctzll(fresh));
      Add(id, other);
      ++added;
    }
  }
  return added;
}

void SeatConflicts::ClearRow(SeatId id) { std::fill_n(Row(id), row_words_, 0); }

void SeatConflicts::KeepColumns(const std::vector<Word>& columns) {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    words_[word] &= columns[word % row_words_];
  }
}

// --- SeatTable ---------------------------------------------------------------------------------

inline std::uint32_t SeatTable::FirstFree(const Asker& asker, std::uint32_t from) {
  for (std::size_t word = from / kBits; word < asker.free.size(); ++word) {
    Word bits = asker.free[word];
    if (word == from / kBits) bits &= ~Word{0} << from % kBits;
    if (bits != 0) {
      return static_cast<std::uint32_t>(word * kBits) +
             static_cast<std::uint32_t>(__builtin_ctzll(bits));
    }
  }
  return kNoRank;
}

// kNoAsker if it is new and there is no seat for it.
inline std::uint32_t SeatTable::FindAsker(std::uint64_t key, Bytes bytes) {
  if (last_ != kNoSeat && seats_[last_].next != kNoSeat) {
    const Seat& guess = seats_[seats_[last_].next];
    if (guess.key == key && guess.bytes == bytes) return guess.asker;
  }
  if (size_ == kMaxSeats) {
    const auto found = asker_of_.find({key, bytes});
    return found == asker_of_.end() ? kNoAsker : found->second;
  }
  const auto [found, is_new] =
      asker_of_.try_emplace({key, bytes}, static_cast<std::uint32_t>(askers_.size()));
  if (!is_new) return found->second;
  if (unused_askers_.empty()) {
    askers_.emplace_back();
  } else {
    found->second = unused_askers_.back();
    unused_askers_.pop_back();
  }
  return found->second;
}

SeatId SeatTable::Take(std::uint64_t key, std::uint64_t step, Bytes bytes, std::uint32_t season) {
  const std::uint32_t index = FindAsker(key, bytes);
  if (index == kNoAsker) return kNoSeat;
  Asker& asker = askers_[index];
  std::uint32_t wanted = 0;
  if (step != 0) {
    if (asker.step != step) {
      asker.step = step;
      asker.occurrence = 0;
    }
    wanted = asker.occurrence++;
  }
  const std::uint32_t rank = FirstFree(asker, wanted);
  const SeatId id = rank == kNoRank ? AddSeat(index, key, bytes) : asker.seats[rank];
  if (id == kNoSeat) return kNoSeat;
  Seat& seat = seats_[id];
  asker.free[seat.rank / kBits] &= ~(Word{1} << seat.rank % kBits);
  seat.taken = true;
  seat.taken_in = season;
  if (seat.restored) ++restored_uses_;
  ++seat.uses;
  ++taken_count_;
  taken_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, taken_bytes_);
  if (seat.met != taken_sum_) {  // others are there than last time
    new_conflicts_ += conflicts_.Add(id, taken_);
    seat.met = taken_sum_;
  }
  taken_[id / kBits] |= Word{1} << id % kBits;
  taken_sum_ += Weight(id);
  if (last_ != kNoSeat) seats_[last_].next = id;
  last_ = id;
  if (seat.next != kNoSeat) __builtin_prefetch(&seats_[seat.next]);
  return id;
}

void SeatTable::Undo(SeatId id) {
  Asker& asker = askers_[seats_[id].asker];
  if (asker.occurrence > 0) --asker.occurrence;
  Vacate(id, seats_[id].taken_in);
}

SeatId SeatTable::AddSeat(std::uint32_t index, std::uint64_t key, Bytes bytes) {
  if (size_ == kMaxSeats) return kNoSeat;
  SeatId id = static_cast<SeatId>(seats_.size());
  if (unused_seats_.empty()) {
    if (seats_.size() == conflicts_.row_words() * kBits) {
      conflicts_.Widen(std::max<std::size_t>(2 * conflicts_.row_words(), 4));
      taken_.resize(conflicts_.row_words(), 0);
    }
    seats_.emplace_back();
    conflicts_.AddRow();
  } else {
    id = unused_seats_.back();
    unused_seats_.pop_back();
  }
  Asker& asker = askers_[index];
  Seat& seat = seats_[id];
  seat = {};
  seat.bytes = bytes;
  seat.key = key;
  seat.asker = static_cast<std::uint16_t>(index);
  seat.rank = static_cast<std::uint16_t>(asker.seats.size());
  asker.seats.push_back(id);
  if (asker.free.size() * kBits < asker.seats.size()) asker.free.push_back(0);
  ++size_;
  ++new_seats_;
  return id;
}

void SeatTable::Restore(const Learned& learned) {
  for (SeatId id = 0; id < learned.seats.size(); ++id) {
    const LearnedSeat& seat = learned.seats[id];
    AddSeat(FindAsker(seat.key, seat.bytes), seat.key, seat.bytes);
    seats_[id].uses = seat.recurs ? kOften : 0;
    seats_[id].restored = seat.recurs;
    askers_[seats_[id].asker].free[seats_[id].rank / kBits] |= Word{1} << seats_[id].rank % kBits;
    for (SeatId other = 0; other < id; ++other) {
      if (learned.AreInConflict(id, other)) conflicts_.Add(id, other);
    }
  }
}

void SeatTable::ForgetBefore(std::uint32_t season) {
  std::vector<Word> kept(conflicts_.row_words(), ~Word{0});
  for (std::uint32_t index = 0; index < askers_.size(); ++index) {
    Asker& asker = askers_[index];
    const auto is_needed = [&](SeatId id) {
      return seats_[id].taken || std::max(seats_[id].taken_in, seats_[id].vacated_in) >= season;
    };
    if (asker.seats.empty()) continue;
    if (std::any_of(asker.seats.begin(), asker.seats.end(), is_needed)) continue;
    const Seat& any = seats_[asker.seats[0]];
    asker_of_.erase({any.key, any.bytes});
    for (const SeatId id : asker.seats) {
      kept[id / kBits] &= ~(Word{1} << id % kBits);
      conflicts_.ClearRow(id);
      seats_[id] = {};
      unused_seats_.push_back(id);
      --size_;
    }
    asker.step = 0;
    asker.seats.clear();
    asker.free.clear();
    unused_askers_.push_back(index);
  }
  conflicts_.KeepColumns(kept);
  // What has been forgotten may come again under the same number.
  for (Seat& seat : seats_) seat.met = ~std::uint64_t{0};
}

void SeatTable::CheckInvariants() const {
  Bytes taken_bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t taken_count = 0;
  for (SeatId id = 0; id < seats_.size(); ++id) {
    const Seat& seat = seats_[id];
    const bool bit = (taken_[id / kBits] >> id % kBits & 1) != 0;
    THIMBLE_CHECK(seat.taken == bit, "Q1: a seat and the set of taken ones disagree");
    if (seat.bytes == 0) continue;
    ++count;
    const Asker& asker = askers_[seat.asker];
    THIMBLE_CHECK(asker.seats[seat.rank] == id, "Q1: a seat is not one of its asker's");
    THIMBLE_CHECK(asker_of_.at({seat.key, seat.bytes}) == seat.asker,
                  "Q1: a seat is not one of its asker's");
    THIMBLE_CHECK((asker.free[seat.rank / kBits] >> seat.rank % kBits & 1) != (seat.taken ? 1 : 0),
                  "Q1: a seat is both taken and free, or neither");
    if (!seat.taken) continue;
    ++taken_count;
    taken_bytes += seat.bytes;
    for (SeatId other = 0; other < id; ++other) {
      THIMBLE_CHECK(!seats_[other].taken || conflicts_.Has(id, other),
                    "Q3: two seats are taken at once and not in conflict");
    }
  }
  THIMBLE_CHECK(count == size_, "Q1: the number of seats is wrong");
  THIMBLE_CHECK(
      taken_count == taken_count_ && taken_bytes == taken_bytes_ && peak_bytes_ >= taken_bytes_,
      "Q2: a sum is wrong");
}

}  // namespace thimble
