#include "tests/simgpu/driver/memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace simgpu {
namespace {

// Blocks of a real device start at multiples of this, and cost at least as much.
constexpr Bytes kGrain = 512;
constexpr Bytes kLargeAlignment = Bytes{2} << 20;

std::string OwnerName(int device) {
  return device == kHost ? "the host" : "device " + std::to_string(device);
}

Bytes Cost(Bytes bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

}  // namespace

Memory::Memory(const Options& options)
    : granularity_(options.granularity),
      defects_(options.defects),
      accounts_(options),
      paging_(options.gpus) {}

Memory::~Memory() {
  for (const Exported& one : exports_) close(one.read_end);
}

bool Memory::Charge(int device, Kind kind, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return ChargeLocked(device, kind, bytes);
}

void Memory::Refund(int device, Kind kind, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  accounts_.Refund(device, kind, bytes);
}

Account Memory::AccountOf(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  SweepExports();
  return accounts_.Of(device);
}

bool Memory::ChargeOrReclaim(int device, Kind kind, Bytes bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    SweepExports();
    if (ChargeLocked(device, kind, bytes)) return true;
  }
  if (reclaim_) reclaim_(device);
  return Charge(device, kind, bytes);
}

// Gives `segment`, which is paid for, bytes and an address.
Outcome Memory::Place(Segment segment, Bytes bytes, Address* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Address begin =
      addresses_.Take(Cost(bytes), bytes < kLargeAlignment ? kGrain : kLargeAlignment);
  segment.host = begin == 0 ? nullptr : backing_.Take(bytes);
  if (segment.host == nullptr) {
    if (begin != 0) addresses_.Give(begin, "");
    return Failure(CUDA_ERROR_OUT_OF_MEMORY);  // of the machine, not of the device
  }
  segments_.Insert(begin, bytes, std::move(segment));
  *address = begin;
  return Success();
}

Outcome Memory::Allocate(Kind kind, int device, Bytes bytes, Address* address) {
  if (bytes == 0) return Failure(CUDA_ERROR_INVALID_VALUE);
  if (bytes > kMostBlock) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  if (!ChargeOrReclaim(device, kind, Cost(bytes))) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  Segment segment;
  segment.device = device;
  segment.kind = kind;
  segment.access = 1u << device;
  const Outcome outcome = Place(std::move(segment), bytes, address);
  if (!outcome.ok()) Refund(device, kind, Cost(bytes));
  return outcome;
}

Outcome Memory::AllocateFromPool(CUmemoryPool pool, int device, std::uint32_t access, Bytes bytes,
                                 Address* address) {
  Segment segment;
  segment.device = device;
  segment.kind = Kind::kPool;
  segment.access = access;
  segment.pool = pool;
  return Place(std::move(segment), bytes, address);
}

Outcome Memory::Free(Kind kind, Address address, const char* by, Segment* freed, Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = segments_.Exactly(address);
  if (found == segments_.end() || found->second.value.kind != kind) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, Hex(address) + " is not the start of a block of " +
                                                 KindName(kind) + ": it is " + Describe(address));
  }
  const Segment segment = found->second.value;
  const Bytes size = found->second.bytes;
  segments_.Erase(found);
  if (kind == Kind::kManaged) {
    HideManaged(address, size);
  } else {
    backing_.Give(segment.host, size);
  }
  if (kind != Kind::kPool && kind != Kind::kManaged)
    accounts_.Refund(segment.device, kind, Cost(size));
  addresses_.Give(address, std::to_string(size) + " bytes of " + KindName(kind) + ", freed by " +
                               by + " on thread " + std::to_string(syscall(SYS_gettid)));
  if (freed != nullptr) *freed = segment;
  if (bytes != nullptr) *bytes = size;
  return Success();
}

void Memory::SetPoolAccess(CUmemoryPool pool, std::uint32_t access) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [begin, entry] : segments_) {
    if (entry.value.pool == pool && pool != nullptr) entry.value.access = access;
  }
}

void Memory::SetPeer(int from, int to, bool enabled) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (enabled) {
    peers_[from] |= 1u << to;
  } else {
    peers_[from] &= ~(1u << to);
  }
}

bool Memory::IsPeer(int from, int to) {
  std::lock_guard<std::mutex> lock(mutex_);
  return (peers_[from] >> to & 1) != 0;
}

bool Memory::Find(Address address, Segment* segment, Address* begin, Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = segments_.Holding(address);
  if (found == segments_.end()) return false;
  *segment = found->second.value;
  *begin = found->first;
  *bytes = found->second.bytes;
  return true;
}

bool Memory::FindReservation(Address address, Address* begin, Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = reservations_.Holding(address);
  if (found == reservations_.end()) return false;
  *begin = found->first;
  *bytes = found->second.bytes;
  return true;
}

bool Memory::Reaches(const Segment& segment, int user) const {
  if (user == kAnyDevice) return segment.access != 0;
  if ((segment.access >> user & 1) != 0) return true;
  return segment.kind != Kind::kVirtual && (peers_[user] >> segment.device & 1) != 0;
}

std::string Memory::Describe(Address address) {
  const auto segment = segments_.Holding(address);
  if (segment != segments_.end()) {
    const Bytes offset = address - segment->first;
    return std::string("byte ") + std::to_string(offset) + " of " +
           std::to_string(segment->second.bytes) + " bytes of " +
           KindName(segment->second.value.kind) + " on " + OwnerName(segment->second.value.device);
  }
  const auto reserved = reservations_.Holding(address);
  if (reserved != reservations_.end()) {
    const auto unmapped = unmapped_.Holding(address);
    return std::string("reserved but not mapped") +
           (unmapped == unmapped_.end() ? "" : "; " + unmapped->second.value);
  }
  if (!addresses_.Contains(address)) return "no device memory";
  const std::string story = addresses_.StoryOf(address);
  return story.empty() ? "not in use" : story;
}

Outcome Memory::Translate(Address address, Bytes bytes, int user, std::vector<Piece>* pieces) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (bytes > 0) {
    const auto found = segments_.Holding(address);
    if (found == segments_.end()) {
      return Illegal(CUDA_ERROR_ILLEGAL_ADDRESS, Hex(address) + " is " + Describe(address));
    }
    const Segment& segment = found->second.value;
    if (!Reaches(segment, user)) {
      const std::string who =
          user == kAnyDevice ? "no device" : "not device " + std::to_string(user);
      return Illegal(CUDA_ERROR_ILLEGAL_ADDRESS,
                     Hex(address) + " is " + Describe(address) + ", which " + who + " may use");
    }
    const Bytes offset = address - found->first;
    const Bytes length = std::min(bytes, found->second.bytes - offset);
    pieces->push_back({segment.host + offset, length, segment.device == kHost});
    address += length;
    bytes -= length;
  }
  return Success();
}

bool Memory::IsUsed(Address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return segments_.Holding(address) != segments_.end();
}

std::vector<Piece> Memory::PiecesOf(Address address, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Piece> pieces;
  const Address end = address + bytes;
  for (auto next = segments_.From(address); next != segments_.end() && next->first < end; ++next) {
    const Address from = std::max(address, next->first);
    const Address to = std::min(end, next->first + next->second.bytes);
    const Segment& segment = next->second.value;
    pieces.push_back({segment.host + (from - next->first), to - from, segment.device == kHost});
  }
  return pieces;
}

}  // namespace simgpu
