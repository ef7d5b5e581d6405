// Names for things that must not be mixed up: an address is no offset, a moment no count.
#pragma once

#include <cstdint>
#include <utility>

#include "allocator/base/bytes.h"

namespace thimble {

// A position on a line, such as an address or a point in time. Two positions on one line are a
// distance apart, which is a plain number: Bytes between addresses. Nothing else is converted
// without saying so: neither numbers to positions nor those of one line to those of another.
//
// A new one is 0, which is none, and false.
template <typename Line, typename Number = std::uint64_t>
class Position {
 public:
  constexpr Position() = default;
  constexpr explicit Position(Number value) : value_(value) {}

  constexpr Number value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }

  constexpr Position& operator+=(Number distance) {
    value_ += distance;
    return *this;
  }
  constexpr Position& operator++() { return *this += 1; }
  friend constexpr Position operator+(Position a, Number distance) { return a += distance; }
  friend constexpr Position operator-(Position a, Number distance) {
    return Position(a.value_ - distance);
  }
  friend constexpr Number operator-(Position a, Position b) { return a.value_ - b.value_; }
  // How far behind a multiple of `unit` it is.
  friend constexpr Number operator%(Position a, Number unit) { return a.value_ % unit; }

  friend constexpr bool operator==(Position a, Position b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Position a, Position b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Position a, Position b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(Position a, Position b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(Position a, Position b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(Position a, Position b) { return a.value_ >= b.value_; }

  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, Position a) {
    return Hash::combine(std::move(hash), a.value_);
  }

 private:
  Number value_ = 0;
};

// All from `begin` up to `end`, by addresses or by offsets.
template <typename Point>
struct Interval {
  Point begin{};
  Point end{};
  constexpr Bytes bytes() const { return end - begin; }
};

// An address as the device sees it (CUdeviceptr on CUDA, a real pointer on the host driver). An
// offset is Bytes: how far an address is from the beginning of its reservation.
using Address = Position<struct AddressLine>;
using AddressRange = Interval<Address>;

// The only ways from pointers to addresses and back.
inline Address ToAddress(const void* pointer) {
  return Address(reinterpret_cast<std::uintptr_t>(pointer));
}
inline void* ToPointer(Address address) { return reinterpret_cast<void*>(address.value()); }

// A queue of work: a CUstream as an integer on CUDA, any number on the host.
enum class StreamId : std::uint64_t {};

// A point in a stream's work, counted from 1 by Driver::Record. Later points are larger.
using StreamSeq = Position<struct StreamLine>;

// A point on a stream, as the driver knows it.
struct StreamPoint {
  StreamId stream{};
  StreamSeq sequence;
};

// The driver's handle of a physical chunk.
enum class ChunkHandle : std::uint64_t {};

}  // namespace thimble
