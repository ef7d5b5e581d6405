// Device memory: which address is backed by which bytes, who may use it, and what it costs.
//
// The rules are cuda.h's, as in allocator/driver/driver.h:
//   R1  A chunk is mapped whole and from its start.
//   R2  Map only onto reserved addresses where nothing is mapped now.
//   R3  Unmap takes exactly one mapping, never a part and never two.
//   R4  A new mapping has no access until SetAccess, which needs a fully mapped range.
//   R5  Addresses and sizes are positive multiples of the granularity.
//   R6  Release takes exactly what Reserve gave, with nothing mapped in it.
//   R7  A chunk may be destroyed while mapped: its bytes live until the last Unmap.
//   R8  Every import of a chunk and every descriptor of it counts as a reference.
// A request that breaks one is refused and changes nothing.
//
// Thread-safe. The caller copies bytes without a lock between the pieces that Translate() returns;
// a device does not protect a program from its own races either.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simgpu/driver/accounts.h"
#include "tests/simgpu/driver/address_space.h"
#include "tests/simgpu/driver/backing.h"
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/paging.h"

namespace simgpu {

// Physical memory of cuMemCreate, on a device or on the host.
struct Chunk {
  Bytes bytes = 0;
  CUmemLocation location = {};
  char* host = nullptr;
  bool shareable = false;
  int references = 0;  // handles, mappings and descriptors

  // A device, or kHost: whose memory it takes.
  int owner() const { return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : kHost; }
};

// Addresses that are backed.
struct Segment {
  char* host = nullptr;
  int device = 0;  // or kHost
  Kind kind = Kind::kPlain;
  std::uint32_t access = 0;      // bit d: device d may read and write
  std::shared_ptr<Chunk> chunk;  // kVirtual
  CUmemoryPool pool = nullptr;   // kPool
};

// A run of device memory as the host sees it.
struct Piece {
  char* host;
  Bytes bytes;
  bool is_on_host = false;  // the memory of a host chunk, or of the program
};

struct VirtualCounts {
  std::size_t chunks = 0;  // with a reference left
  std::size_t mappings = 0;
  std::size_t reservations = 0;
};

class Memory {
 public:
  explicit Memory(const Options& options);
  ~Memory();

  bool Contains(Address address) const { return addresses_.Contains(address); }

  // Whole blocks. `charged`: the caller has paid for the bytes already.
  Outcome Allocate(Kind kind, int device, Bytes bytes, Address* address);
  Outcome AllocateFromPool(CUmemoryPool pool, int device, std::uint32_t access, Bytes bytes,
                           Address* address);
  // `freed` may be null; otherwise it receives the freed block.
  Outcome Free(Kind kind, Address address, const char* by, Segment* freed, Bytes* bytes);

  // Charges of a pool as a whole, see accounts.h.
  bool Charge(int device, Kind kind, Bytes bytes);
  void Refund(int device, Kind kind, Bytes bytes);
  Account AccountOf(int device);  // or of kHost
  // Tries to make room on a device that has none; called without a lock.
  void SetReclaim(std::function<void(int device)> reclaim) { reclaim_ = std::move(reclaim); }

  // Managed memory, which the host may use as well. It is charged to no device, because it moves.
  Outcome AllocateManaged(int device, Bytes bytes, Address* address);
  // `device` uses these bytes, wherever they are (kAnyDevice: the one they were allocated on): what
  // of them is managed moves there.
  void Touch(int device, Address address, Bytes bytes);
  // The same for work that was only given a pointer, and uses `least` bytes from there or more. An
  // allocator in the program does not tell the driver where its blocks end, but the next address
  // that any work was given is the start of another one.
  void TouchBlock(int device, Address address, Bytes least);
  Outcome Prefetch(Address address, Bytes bytes, int to);  // a device, or kHost
  // What the calling thread has moved since it asked last: by touching, prefetching, or taking room
  // for other memory. SecondsOf() has its price.
  static Movement TakeMovement();
  PageCounts PagesOf(int device);
  Bytes managed() const { return managed_; }

  // Virtual memory.
  Outcome Reserve(Bytes bytes, Bytes alignment, Address* address);
  Outcome Release(Address address, Bytes bytes);
  Outcome Create(const CUmemLocation& location, Bytes bytes, bool shareable,
                 CUmemGenericAllocationHandle* handle);
  Outcome Destroy(CUmemGenericAllocationHandle handle);
  Outcome Retain(Address address, CUmemGenericAllocationHandle* handle);
  Outcome Map(Address address, Bytes bytes, Bytes offset, CUmemGenericAllocationHandle handle);
  Outcome Unmap(Address address, Bytes bytes);
  // `mappings` receives how many it covered.
  Outcome SetAccess(Address address, Bytes bytes, std::uint32_t grant, std::uint32_t revoke,
                    std::size_t* mappings);
  Outcome Export(CUmemGenericAllocationHandle handle, int* descriptor);
  Outcome Import(int descriptor, CUmemGenericAllocationHandle* handle);
  std::shared_ptr<Chunk> FindChunk(CUmemGenericAllocationHandle handle);
  VirtualCounts CountVirtual();

  // Every device that may use any of a pool's blocks from now on.
  void SetPoolAccess(CUmemoryPool pool, std::uint32_t access);
  // Grants device `from` access to the plain memory of device `to`, or revokes it.
  void SetPeer(int from, int to, bool enabled);
  bool IsPeer(int from, int to);

  // What is at `address`: false if nothing is. `begin` and `bytes` are of the block or mapping.
  bool Find(Address address, Segment* segment, Address* begin, Bytes* bytes);
  // The reservation around an address, or false.
  bool FindReservation(Address address, Address* begin, Bytes* bytes);

  // [address, address + bytes) as host memory, for device `user` (kAnyDevice: copies, which reach
  // every device). CUDA_ERROR_ILLEGAL_ADDRESS says what is wrong with the first bad byte.
  static constexpr int kAnyDevice = -1;
  Outcome Translate(Address address, Bytes bytes, int user, std::vector<Piece>* pieces);
  // Whether there is memory at `address` now.
  bool IsUsed(Address address);
  // What is there of it, whoever may use it.
  std::vector<Piece> PiecesOf(Address address, Bytes bytes);

 private:
  struct Exported {
    int read_end;  // of a pipe: hung up when all copies of the descriptor are closed
    std::uint64_t inode;
    std::shared_ptr<Chunk> chunk;
  };
  struct Handle {
    std::shared_ptr<Chunk> chunk;
    int count;  // cuMemRetainAllocationHandle counts
  };

  // More than a process can address.
  static constexpr Bytes kMostBlock = Bytes{1} << 46;

  void TouchLocked(int device, Address address, Bytes bytes);
  bool ChargeLocked(int device, Kind kind, Bytes bytes);
  void HideManaged(Address address, Bytes bytes);
  // What a device has for managed memory.
  Bytes RoomOf(int device) const { return accounts_.Of(device).free_bytes(); }
  bool ChargeOrReclaim(int device, Kind kind, Bytes bytes);
  Outcome Place(Segment segment, Bytes bytes, Address* address);
  void Drop(const std::shared_ptr<Chunk>& chunk);
  // Whose memory a chunk takes.
  int PayerOf(const Chunk& chunk) const {
    return defects_.Has(Defect::kDevice) ? 0 : chunk.owner();
  }
  void SweepExports();
  bool Reaches(const Segment& segment, int user) const;
  std::string Describe(Address address);
  bool IsMultiple(std::uint64_t value) const { return value % granularity_ == 0; }

  const Bytes granularity_;
  const Defects defects_;
  std::function<void(int device)> reclaim_;

  std::mutex mutex_;
  AddressSpace addresses_;
  Backing backing_;
  Accounts accounts_;
  Paging paging_;
  std::atomic<Bytes> managed_{0};
  std::set<Address> starts_;  // in managed memory: what work was given
  RangeMap<Segment> segments_;
  RangeMap<char> reservations_;
  RangeMap<std::string> unmapped_;  // who unmapped what inside live reservations
  std::map<CUmemGenericAllocationHandle, Handle> handles_;
  CUmemGenericAllocationHandle next_handle_ = 0x52000000;
  std::size_t chunks_ = 0;
  std::vector<Exported> exports_;
  Address loose_ = 0;                      // Defect::kLoose: the next to be given away
  std::uint32_t peers_[kMaxDevices] = {};  // bit d of [from]: from reaches d
};

}  // namespace simgpu
