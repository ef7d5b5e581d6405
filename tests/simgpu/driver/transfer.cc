#include "tests/simgpu/driver/transfer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {
namespace {

bool IsOnDevice(Address address) { return Simulator::Get().memory.Contains(address); }

// Host memory is one piece; the processor checks whether the program may access it.
Outcome Resolve(Address address, Bytes bytes, std::vector<Piece>* pieces) {
  if (IsOnDevice(address)) {
    return Simulator::Get().memory.Translate(address, bytes, Memory::kAnyDevice, pieces);
  }
  if (address == 0) return Illegal(CUDA_ERROR_INVALID_VALUE, "a null pointer");
  pieces->push_back({reinterpret_cast<char*>(address), bytes, /*is_on_host=*/true});
  return Success();
}

// Of 4 or 8 bytes, and aligned to them as CUDA wants it: so it lies in one piece.
Outcome ResolveNumber(Address address, Bytes bytes, Piece* place) {
  if (address % bytes != 0) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "a number that is not aligned to its size");
  }
  std::vector<Piece> pieces;
  const Outcome outcome = Resolve(address, bytes, &pieces);
  if (outcome.ok()) *place = pieces[0];
  return outcome;
}

void CopyPieces(const std::vector<Piece>& to, const std::vector<Piece>& from) {
  std::size_t i = 0;
  std::size_t j = 0;
  Bytes done_to = 0;
  Bytes done_from = 0;
  while (i < to.size() && j < from.size()) {
    const Bytes bytes = std::min(to[i].bytes - done_to, from[j].bytes - done_from);
    std::memmove(to[i].host + done_to, from[j].host + done_from, bytes);
    done_to += bytes;
    done_from += bytes;
    if (done_to == to[i].bytes) {
      ++i;
      done_to = 0;
    }
    if (done_from == from[j].bytes) {
      ++j;
      done_from = 0;
    }
  }
}

// No byte of it is on the host.
bool IsInside(const std::vector<Piece>& pieces) {
  return std::none_of(pieces.begin(), pieces.end(),
                      [](const Piece& piece) { return piece.is_on_host; });
}

Outcome Copy(Address to, Address from, Bytes bytes) {
  if (bytes == 0) return Success();
  Simulator& simulator = Simulator::Get();
  std::vector<Piece> target;
  std::vector<Piece> source;
  Outcome outcome = Resolve(to, bytes, &target);
  if (outcome.ok()) outcome = Resolve(from, bytes, &source);
  if (!outcome.ok()) return outcome;
  simulator.traffic.Count(PlaceOf(from), PlaceOf(to), bytes);
  const bool from_device = IsOnDevice(from);
  const bool to_device = IsOnDevice(to);
  const bool is_inside = IsInside(target) && IsInside(source);
  if (is_inside && bytes > simulator.options.copy) return Success();
  const char* const first = source[0].host;
  if (from_device && !to_device && simulator.results.MakeUp(first, bytes, target[0].host)) {
    return Success();
  }
  CopyPieces(target, source);
  const bool is_known = !from_device || simulator.results.WasWritten(first, bytes);
  if (to_device && is_known) simulator.results.Wrote(target[0].host, bytes);
  return Success();
}

Outcome CheckCopy(Address to, Address from, Bytes bytes) {
  std::vector<Piece> ignored;
  if (bytes == 0) return Success();
  const Outcome outcome = Resolve(to, bytes, &ignored);
  return outcome.ok() ? Resolve(from, bytes, &ignored) : outcome;
}

// Calls `row` for the start of every row at both ends, until one fails.
template <typename Row>
Outcome ForEachRow(const Box& to, const Box& from, const Extent& extent, Row row) {
  for (Bytes z = 0; z < extent.depth; ++z) {
    for (Bytes y = 0; y < extent.height; ++y) {
      const Outcome outcome = row(to.begin + z * to.slice + y * to.pitch,
                                  from.begin + z * from.slice + y * from.pitch, extent.width);
      if (!outcome.ok()) return outcome;
    }
  }
  return Success();
}

void FillPiece(const Piece& piece, const unsigned char* pattern, Bytes element, Bytes phase) {
  for (Bytes i = 0; i < piece.bytes; ++i) {
    piece.host[i] = static_cast<char>(pattern[(phase + i) % element]);
  }
}

Outcome FillRow(Address begin, const Fill& fill) {
  std::vector<Piece> pieces;
  const Outcome outcome = Resolve(begin, fill.count * fill.element, &pieces);
  if (!outcome.ok()) return outcome;
  const bool on_device = IsOnDevice(begin);
  unsigned char pattern[4];
  std::memcpy(pattern, &fill.value, sizeof(pattern));
  const bool is_uniform = std::all_of(pattern, pattern + fill.element,
                                      [&](unsigned char byte) { return byte == pattern[0]; });
  Bytes phase = 0;
  for (const Piece& piece : pieces) {
    if (is_uniform && pattern[0] == 0 && on_device) {
      ClearSparsely(piece.host, piece.bytes);
    } else if (is_uniform) {
      std::memset(piece.host, pattern[0], piece.bytes);
    } else {
      FillPiece(piece, pattern, fill.element, phase);
    }
    phase += piece.bytes;
  }
  if (on_device && !pieces.empty()) {
    Simulator::Get().results.Wrote(pieces[0].host, fill.count * fill.element);
  }
  return Success();
}

bool IsPageable(Address address) { return PlaceOf(address) == Place::kPageable; }

// Not in a chunk on the host.
bool IsAtDevice(Address address) {
  const Place place = PlaceOf(address);
  return place == Place::kDevice || place == Place::kManaged;
}

// The device whose memory is at `address`, or that of the current context.
int DeviceOf(Address address) {
  Simulator& simulator = Simulator::Get();
  Segment segment;
  Address begin = 0;
  Bytes bytes = 0;
  if (simulator.memory.Find(address, &segment, &begin, &bytes) && segment.device != kHost) {
    return segment.device;
  }
  const std::shared_ptr<Context> context = simulator.contexts.Current();
  return context == nullptr ? 0 : context->device;
}

// From the first byte to behind the last.
Bytes SpanOf(const Box& box, const Extent& extent) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return 0;
  return (extent.depth - 1) * box.slice + (extent.height - 1) * box.pitch + extent.width;
}

Demand DemandOfCopy(Address to, Address from, Bytes bytes) {
  Demand demand;
  demand.bytes = static_cast<double>(bytes);
  // The host's own time is real.
  if (bytes == 0 || (!IsOnDevice(to) && !IsOnDevice(from))) return demand;
  const bool to_device = IsAtDevice(to);
  const bool from_device = IsAtDevice(from);
  demand.device = DeviceOf(from_device ? from : to);
  if (to_device && from_device) {
    demand.peer = DeviceOf(to);
    const bool is_inside = demand.peer == demand.device;
    demand.kind = is_inside ? Demand::Kind::kKernel : Demand::Kind::kCopyPeer;
    if (is_inside) demand.bytes *= 2;  // read and written
  } else {
    demand.kind = to_device ? Demand::Kind::kCopyIn : Demand::Kind::kCopyOut;
    demand.pageable = IsPageable(to_device ? from : to);
  }
  return demand;
}

}  // namespace

Work CopyWork(const char* name, Address to, Address from, Bytes bytes) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.name = name;
  work.check = [=] { return CheckCopy(to, from, bytes); };
  work.run = [=] { return Copy(to, from, bytes); };
  work.operands = {{to, bytes, /*written=*/true}, {from, bytes}};
  work.demand = DemandOfCopy(to, from, bytes);
  return work;
}

Work CopyBoxWork(const char* name, const Box& to, const Box& from, const Extent& extent) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.name = name;
  work.check = [=] { return ForEachRow(to, from, extent, CheckCopy); };
  work.run = [=] { return ForEachRow(to, from, extent, Copy); };
  work.operands = {{to.begin, SpanOf(to, extent), /*written=*/true},
                   {from.begin, SpanOf(from, extent)}};
  work.demand = DemandOfCopy(to.begin, from.begin, extent.width * extent.height * extent.depth);
  return work;
}

Outcome DescribeCopy(const CUDA_MEMCPY3D& copy, Box* to, Box* from, Extent* extent) {
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY || copy.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    return Failure(CUDA_ERROR_NOT_SUPPORTED);
  }
  const auto describe = [](CUmemorytype type, const void* host, CUdeviceptr device, Bytes pitch,
                           Bytes height, Bytes x, Bytes y, Bytes z, const CUDA_MEMCPY3D& all) {
    Box box;
    box.pitch = pitch != 0 ? pitch : all.WidthInBytes;
    box.slice = box.pitch * (height != 0 ? height : all.Height);
    box.begin = (type == CU_MEMORYTYPE_HOST ? reinterpret_cast<Address>(host) : device) + x +
                y * box.pitch + z * box.slice;
    return box;
  };
  *to = describe(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstPitch, copy.dstHeight,
                 copy.dstXInBytes, copy.dstY, copy.dstZ, copy);
  *from = describe(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcPitch, copy.srcHeight,
                   copy.srcXInBytes, copy.srcY, copy.srcZ, copy);
  *extent = {copy.WidthInBytes, copy.Height, copy.Depth};
  return Success();
}

Work FillWork(const char* name, const Fill& fill) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.name = name;
  const auto each = [fill](auto row) {
    const Box box = {fill.begin, fill.pitch, 0};
    return ForEachRow(box, box, {fill.count * fill.element, fill.rows, 1}, row);
  };
  work.check = [each] {
    return each([](Address begin, Address, Bytes bytes) {
      std::vector<Piece> ignored;
      return bytes == 0 ? Success() : Resolve(begin, bytes, &ignored);
    });
  };
  work.run = [each, fill] {
    return each([&fill](Address begin, Address, Bytes bytes) {
      return bytes == 0 ? Success() : FillRow(begin, fill);
    });
  };
  const Bytes bytes = fill.count * fill.element * fill.rows;
  if (bytes > 0 && IsOnDevice(fill.begin)) {
    work.demand.kind = Demand::Kind::kKernel;
    work.demand.device = DeviceOf(fill.begin);
    work.demand.bytes = static_cast<double>(bytes);
    work.operands = {{fill.begin, SpanOf({fill.begin, fill.pitch, 0},
                                         {fill.count * fill.element, fill.rows, 1})}};
  }
  return work;
}

// As on a real device, bytes that leave for pageable memory have arrived when the call returns, and
// the caller feeds long copies from there through a small buffer, until they are done.
bool MustWait(Address to, Address from, Bytes bytes) {
  constexpr Bytes kFits = Bytes{64} << 10;
  return IsPageable(to) || (bytes > kFits && IsPageable(from) && Simulator::Get().clock.runs());
}

Outcome StartCopy(const char* name, Address to, Address from, Bytes bytes, CUstream stream) {
  Simulator& simulator = Simulator::Get();
  const std::shared_ptr<Stream> found = simulator.FindStream(stream);
  const bool is_captured = found != nullptr && found->capture() != nullptr;
  const bool is_queued = found != nullptr && !is_captured && !found->IsImmediate();
  if (is_queued && IsPageable(to)) {
    const Outcome outcome = found->Synchronize();
    if (!outcome.ok()) return outcome;
  }
  if (!is_queued || !IsPageable(from)) {
    const Outcome outcome = simulator.Start(stream, CopyWork(name, to, from, bytes));
    if (!outcome.ok() || is_captured || !MustWait(to, from, bytes)) return outcome;
    return found->Synchronize();
  }
  const char* const source = reinterpret_cast<const char*>(from);
  const auto staged = std::make_shared<std::vector<char>>(source, source + bytes);
  Work work = CopyWork(name, to, reinterpret_cast<Address>(staged->data()), bytes);
  work.run = [run = work.run, staged] { return run(); };
  return simulator.Start(stream, work);
}

// Atomic, because streams write and read such numbers at the same time.
Outcome ReadNumber(Address address, Bytes bytes, std::uint64_t* number) {
  Piece place{};
  const Outcome outcome = ResolveNumber(address, bytes, &place);
  if (!outcome.ok()) return outcome;
  *number = bytes == sizeof(std::uint32_t)
                ? __atomic_load_n(reinterpret_cast<std::uint32_t*>(place.host), __ATOMIC_ACQUIRE)
                : __atomic_load_n(reinterpret_cast<std::uint64_t*>(place.host), __ATOMIC_ACQUIRE);
  return outcome;
}

Outcome WriteNumber(Address address, Bytes bytes, std::uint64_t number) {
  Piece place{};
  const Outcome outcome = ResolveNumber(address, bytes, &place);
  if (!outcome.ok()) return outcome;
  if (IsOnDevice(address)) Simulator::Get().results.Wrote(place.host, bytes);
  if (bytes == sizeof(std::uint32_t)) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(place.host),
                     static_cast<std::uint32_t>(number), __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(place.host), number, __ATOMIC_RELEASE);
  }
  return outcome;
}

}  // namespace simgpu
