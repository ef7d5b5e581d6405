// Finds memory that was taken away, or handed on, while work could still use it.
//
// Work holds the blocks that it was given until the host knows that it is over, or, for other work,
// until order says so (order.h). A block is what an allocator handed out: it says so by NVTX, as
// Thimble does with nvtx:on, or else an allocation or mapping counts as one. Two pieces of work of
// one block are the program's affair. A finding is
//
//   - memory that is unmapped, or host memory that is unpinned, while the host does not know that
//     work with it is over;
//   - a block of a pool that is freed on a stream before work on another one;
//   - work with a block of whose bytes another block, which was freed, may still be in use;
//   - host memory that changes while a copy reads or writes it, or that another copy uses then.
//
// Each is an illegal call, whose line names both sides. Thread-safe.
#pragma once

#include <list>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/simgpu/driver/host_memory.h"
#include "tests/simgpu/driver/log.h"
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/order.h"

namespace simgpu {

// Memory that work was given.
struct Operand {
  Address address = 0;
  Bytes bytes = 0;       // 0: from there to the end of its block
  bool written = false;  // by a copy
};

class Races {
 public:
  Races(const Options& options, Memory& memory, HostMemory& host_memory, Log& log);

  bool are_watched() const { return watched_; }

  // Streams, see order.h. A stream that nobody watches is -1.
  int AddStream(int device);
  Sequence Submit(int stream, const std::string& work, const std::vector<Operand>& operands);
  Moment At(int stream);
  Moment AtAll(int device);
  void Join(int stream, const Moment& moment);
  void Learn(const Moment& moment);
  // The effects of a copy are there: from now on its host memory must not change.
  void Watch(int stream, Sequence sequence, const std::vector<Operand>& operands);

  // Blocks, as an allocator reports them.
  void Begin(Address address, Bytes bytes);
  void End(Address address);

  // Memory, before it goes or after it came.
  void Unmapping(Address address, Bytes bytes);
  void Mapped(Address address, Bytes bytes);
  void Unpinning(Address address);
  void FreeingOn(int stream, Address address);
  // After the program waited for the device.
  void Freed(Address address);

  std::size_t block_count();  // that an allocator reported, ever

 private:
  struct Block {
    std::vector<Use> uses;
    std::vector<Use> inherited;  // of blocks that had the same bytes or addresses
  };
  using Blocks = RangeMap<Block>;
  struct Found {
    Address begin = 0;
    Bytes bytes = 0;
    Block* block = nullptr;  // null: there is none
  };
  // Host memory under a copy.
  struct Watched {
    Use use;
    Address address;
    Bytes bytes;
    bool written;
    std::uint64_t sum;
  };

  // The block around an address: a reported one, or the allocation or mapping.
  Found BlockAt(Address address);
  void Touch(const Operand& operand, Use use);
  void Inherit(Block* block, Address address, Bytes bytes);
  void DropKnown(std::vector<Use>* uses) const;
  // Reports the uses that are not known to be over, and forgets them.
  void CheckKnown(std::vector<Use>* uses, const std::string& what);
  void CheckWatched();
  // A copy begins with host memory: what other copies do with it is no longer looked at.
  void EndWatches(const Operand& operand, const Use& use);
  std::string Describe(const Use& use) const;

  const bool watched_;
  Memory& memory_;
  HostMemory& host_memory_;
  Log& log_;

  std::mutex mutex_;
  Order order_;
  std::set<std::string> names_;  // of work; uses point to them
  Blocks blocks_;                // reported ones
  Blocks areas_;                 // allocations and mappings, where nobody reports blocks
  Cells by_memory_;              // uses of blocks that are gone, by their bytes...
  Cells by_address_;             // ...and by their addresses
  std::list<Watched> copies_;
  std::size_t block_count_ = 0;
};

}  // namespace simgpu
