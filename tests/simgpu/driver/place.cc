#include "tests/simgpu/driver/place.h"

#include <cstdio>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {

const char* PlaceName(Place place) {
  switch (place) {
    case Place::kDevice:
      return "device";
    case Place::kHostChunk:
      return "host chunk";
    case Place::kManaged:
      return "managed";
    case Place::kPinned:
      return "pinned";
    case Place::kPageable:
      return "pageable";
  }
  return "";
}

Place PlaceOf(Address address) {
  Simulator& simulator = Simulator::Get();
  if (!simulator.memory.Contains(address)) {
    return simulator.host_memory.Knows(address) ? Place::kPinned : Place::kPageable;
  }
  Segment segment;
  Address begin = 0;
  Bytes bytes = 0;
  simulator.memory.Find(address, &segment, &begin, &bytes);
  if (segment.kind == Kind::kManaged) return Place::kManaged;
  return segment.device == kHost ? Place::kHostChunk : Place::kDevice;
}

std::string Traffic::Text() {
  std::string text;
  for (int from = 0; from < kPlaces; ++from) {
    for (int to = 0; to < kPlaces; ++to) {
      const Bytes bytes = Between(static_cast<Place>(from), static_cast<Place>(to));
      if (bytes == 0) continue;
      char amount[32];
      std::snprintf(amount, sizeof(amount), "%.1f MiB ", static_cast<double>(bytes) / 0x1p20);
      text += (text.empty() ? "" : ", ") + std::string(amount) +
              PlaceName(static_cast<Place>(from)) + " to " + PlaceName(static_cast<Place>(to));
    }
  }
  return text;
}

}  // namespace simgpu
