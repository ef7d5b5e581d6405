// What kind of memory an address is in, as far as the speed of a copy depends on it, and how many
// bytes were copied between which kinds.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "tests/simgpu/driver/range_map.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

enum class Place { kDevice, kHostChunk, kManaged, kPinned, kPageable };
inline constexpr int kPlaces = 5;

// As messages call it.
const char* PlaceName(Place place);

// Pinned: the driver allocated it, or the program registered it. All other memory of the program is
// pageable.
Place PlaceOf(Address address);

// What work asks of the hardware, now that its memory is where it is: what it reaches on the host
// crosses the bus, and managed pages come to its device first. The thread must have run the work.
Demand Located(const Work& work);

class Traffic {
 public:
  void Count(Place from, Place to, Bytes bytes) { At(from, to) += bytes; }
  Bytes Between(Place from, Place to) { return At(from, to); }
  // "12.0 MiB pinned to device, 3.5 MiB device to pageable"; "" if nothing was copied.
  std::string Text();

 private:
  std::atomic<Bytes>& At(Place from, Place to) {
    return bytes_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  std::array<std::array<std::atomic<Bytes>, kPlaces>, kPlaces> bytes_ = {};
};

}  // namespace simgpu
