// One GPU: its arena, made when the first block is asked for, and what must be known around it.
//
// If the arena cannot be made, one message says why and everything goes to the driver's own pool:
// the program runs as if the front were not there.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/block_sizes.h"
#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/last_failure.h"
#include "xla_plugin/driver_front/settings.h"

namespace thimble::xla {

struct DeviceIdentity {
  int ordinal = 0;
  CUdevice handle = 0;
  CUmemoryPool pool = nullptr;  // the driver's default pool, whose place the arena takes
  std::size_t total_bytes = 0;
};

// A block of an arena that is held.
struct HeldBlock {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;  // as asked for
};

// A stream and where it is.
struct LocatedStream {
  CUstream handle = nullptr;
  CUcontext context = nullptr;  // nullptr: not known
};

class Device {
 public:
  // `settings`, `driver`, a path, and `failure` must outlive the device.
  Device(const DeviceIdentity& identity, const Settings& settings, const std::string& driver,
         LastFailure& failure)
      : identity_(identity), settings_(settings), driver_(driver), failure_(failure) {}

  const DeviceIdentity& identity() const { return identity_; }
  std::size_t limit() const { return settings_.LimitFor(identity_.total_bytes); }

  // The arena, or nullptr if there is none (yet).
  thimble_arena* arena() const { return arena_.load(std::memory_order_acquire); }
  // The same, but tries to make it; once.
  thimble_arena* MakeArena();

  // Whether the arena reserved that address.
  bool Contains(CUdeviceptr address) const {
    return arena() != nullptr && sizes_->Contains(address);
  }

  // Whether the device's default pool is the one that the arena stands for, not one that somebody
  // put in its place.
  bool serves_by_default() const { return serves_by_default_.load(std::memory_order_relaxed); }
  // Asks the driver; to be called when that may have changed.
  void UpdateDefaultPool();

  // With an arena only. To be used in the order of `stream`; without one, at once and anywhere.
  CUresult Allocate(std::size_t bytes, std::optional<LocatedStream> stream, CUdeviceptr* pointer);

  // With an address that Contains() only. Work submitted to `stream` may still use the block;
  // without a stream, any work: it is waited for.
  CUresult Free(CUdeviceptr pointer, std::optional<LocatedStream> stream);

  // The block that `inside` points into.
  std::optional<HeldBlock> Find(CUdeviceptr inside) const;

  // `peer` shall reach the blocks. Only possible before the first one is made.
  CUresult AddPeer(int peer);

  // Waits for what was freed on the stream: it is about to be destroyed or captured.
  void ForgetStream(const LocatedStream& stream);

  // With it streams can be asked about on a thread that has no context; nullptr before there is an
  // arena.
  CUcontext primary() const { return arena() == nullptr ? nullptr : primary_; }

  thimble_stats GetStats() const;

 private:
  std::string TryMakeArena();
  // The number of a stream for the arena, which asks the driver in the primary context how far it
  // has come. Nothing for a stream that it cannot ask so: one of another context, or the per-thread
  // default stream, which is another one on every thread. The front waits for these instead.
  std::optional<std::uint64_t> NumberOf(const LocatedStream& stream) const;
  CUresult Synchronize(CUstream stream) const;
  CUresult Synchronize() const;
  // Says what went wrong, unless it is the caller's mistake.
  CUresult ToResult(thimble_status status);
  void Report(const std::string& text);
  std::string Named(const std::string& text) const;

  const DeviceIdentity identity_;
  const Settings& settings_;
  const std::string& driver_;
  LastFailure& failure_;  // of all devices
  std::mutex mutex_;      // for making the arena, and for what follows
  bool tried_ = false;
  std::vector<int> peers_;
  std::string last_report_;
  std::uint64_t allocations_at_last_report_ = 0;
  // Set before arena_ and never changed after it.
  CUcontext primary_ = nullptr;
  CUstream quiet_ = nullptr;  // nothing is ever submitted to it: what is freed on it is free
  std::unique_ptr<BlockSizes> sizes_;
  std::atomic<thimble_arena*> arena_{nullptr};
  std::mutex default_pool_mutex_;  // for asking and setting at once
  std::atomic<bool> serves_by_default_{true};
};

}  // namespace thimble::xla
