// One byte per kUnit of the home space: is a small block of some class in use there, or cached in a
// thread's magazine? It lets Free() find the size of a small block and catch a double free without
// the arena's mutex.
//
// A mark is changed by whoever owns the block at that moment: by Claim*() of exactly one of several
// threads that free the same block, or under the arena's mutex when the block is made or unmade.
//
// The table is as long as the home space but costs memory only where small blocks live. Large
// blocks are told apart by one byte per slot, so that freeing them does not touch the long table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"

namespace thimble {

// Small blocks that magazines hold: 1 .. kMarkClasses units long; class c is c + 1 units.
inline constexpr int kMarkClasses = 16;

class SmallMarks {
 public:
  // `capacity` of the home space, a multiple of `slot_bytes`, a power of two.
  static absl::StatusOr<std::unique_ptr<SmallMarks>> Create(Bytes capacity, Bytes slot_bytes);
  ~SmallMarks();
  SmallMarks(const SmallMarks&) = delete;
  SmallMarks& operator=(const SmallMarks&) = delete;

  enum class State : std::uint8_t { kNone, kInUse, kCached };
  struct Mark {
    State state = State::kNone;
    int size_class = 0;
  };
  Mark At(Bytes offset) const {
    if (slots_[offset >> slot_shift_].load(std::memory_order_relaxed) == 0) return {};
    const std::uint8_t value = Of(offset).load(std::memory_order_relaxed);
    if (value == kNothing) return {};
    if (value > kMarkClasses) return {State::kCached, value - kMarkClasses - 1};
    return {State::kInUse, value - 1};
  }

  // A block of `size_class` that nobody else can see is in use, or nothing begins there any more.
  void SetInUse(Bytes offset, int size_class) {
    Cell& slot = slots_[offset >> slot_shift_];
    if (slot.load(std::memory_order_relaxed) == 0) slot.store(1, std::memory_order_relaxed);
    Store(offset, InUse(size_class));
  }
  void Clear(Bytes offset) { Store(offset, kNothing); }

  // False if the block is not in use (any more): somebody else freed it first.
  bool ClaimForCache(Bytes offset, int size_class) {
    return Exchange(offset, InUse(size_class), Cached(size_class));
  }
  bool ClaimForFree(Bytes offset, int size_class) {
    return Exchange(offset, InUse(size_class), kNothing);
  }

 private:
  using Cell = std::atomic<std::uint8_t>;
  static_assert(sizeof(Cell) == 1 && Cell::is_always_lock_free, "zero pages must be valid cells");
  static constexpr std::uint8_t kNothing = 0;
  static constexpr std::uint8_t InUse(int size_class) {
    return static_cast<std::uint8_t>(size_class + 1);
  }
  static constexpr std::uint8_t Cached(int size_class) {
    return static_cast<std::uint8_t>(size_class + 1 + kMarkClasses);
  }

  SmallMarks(Cell* cells, Bytes units, Bytes slots, int slot_shift)
      : cells_(cells), slots_(cells + units), bytes_(units + slots), slot_shift_(slot_shift) {}

  Cell& Of(Bytes offset) const;
  void Store(Bytes offset, std::uint8_t value) {
    Of(offset).store(value, std::memory_order_relaxed);
  }
  bool Exchange(Bytes offset, std::uint8_t from, std::uint8_t to) {
    return Of(offset).compare_exchange_strong(from, to, std::memory_order_relaxed);
  }

  Cell* const cells_;  // one per unit
  Cell* const slots_;  // one per slot, behind them: not 0 once a small block was marked there
  const Bytes bytes_;  // of both
  const int slot_shift_;
};

}  // namespace thimble
