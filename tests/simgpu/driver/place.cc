#include "tests/simgpu/driver/place.h"

#include <algorithm>
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

Demand Located(const Work& work) {
  Demand demand = work.demand;
  const bool is_kernel = demand.kind == Demand::Kind::kKernel;
  Memory& memory = Simulator::Get().memory;
  const double reach = demand.bytes / std::max<double>(1, work.operands.size());
  for (const Operand& operand : work.operands) {
    const Bytes bytes = operand.bytes != 0 ? operand.bytes : static_cast<Bytes>(reach);
    const int device = is_kernel ? demand.device : Memory::kAnyDevice;
    if (operand.bytes != 0) {
      memory.Touch(device, operand.address, bytes);
    } else {
      memory.TouchBlock(device, operand.address, bytes);
    }
    if (!is_kernel) continue;
    for (const Piece& piece : memory.PiecesOf(operand.address, bytes)) {
      if (piece.is_on_host) demand.bus_bytes += static_cast<double>(piece.bytes);
    }
  }
  if (is_kernel) demand.bytes = std::max(0.0, demand.bytes - demand.bus_bytes);
  demand.paging = Memory::TakeMovement();
  return demand;
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
