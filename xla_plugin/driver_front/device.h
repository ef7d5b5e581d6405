// One GPU: its arena, which the first request creates, and the state that belongs to it.
//
// If the arena cannot be made, one message says why and the driver's own pool serves everything:
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
  CUmemoryPool pool = nullptr;  // the driver's default pool, which the arena replaces
  std::size_t total_bytes = 0;
};

// A held block of an arena.
struct HeldBlock {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;  // as requested
};

// A stream and its context.
struct LocatedStream {
  CUstream handle = nullptr;
  CUcontext context = nullptr;  // nullptr: unknown
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
  // Like arena(), but tries once to create it.
  thimble_arena* MakeArena();

  // Whether the arena reserved that address.
  bool Contains(CUdeviceptr address) const {
    return arena() != nullptr && sizes_->Contains(address);
  }

  // Whether the device's default pool is still the one that the arena replaces, not another one
  // that somebody set.
  bool serves_by_default() const { return serves_by_default_.load(std::memory_order_relaxed); }
  // Asks the driver again; to be called when the default pool may have changed.
  void UpdateDefaultPool();

  // Needs an arena. The block may be used in the order of `stream`; without a stream, at once and
  // anywhere.
  CUresult Allocate(std::size_t bytes, std::optional<LocatedStream> stream, CUdeviceptr* pointer);

  // Needs an address for which Contains() holds. Work submitted to `stream` may still use the
  // block. Without a stream, any work may, so this waits for the device.
  CUresult Free(CUdeviceptr pointer, std::optional<LocatedStream> stream);

  // The block that `inside` points into.
  std::optional<HeldBlock> Find(CUdeviceptr inside) const;

  // Lets `peer` access the blocks. Only possible before the first block is made.
  CUresult AddPeer(int peer);

  // Waits for the stream's frees, because the stream is about to be destroyed or captured.
  void ForgetStream(const LocatedStream& stream);

  // The context in which a thread without one can query streams; nullptr until there is an arena.
  CUcontext primary() const { return arena() == nullptr ? nullptr : primary_; }

  thimble_stats GetStats() const;

 private:
  std::string TryMakeArena();
  // The arena's number for a stream. The arena queries the stream's progress in the primary
  // context. Returns nothing for streams that it cannot query there: streams of other contexts, and
  // the per-thread default stream, which differs on every thread. The front waits for these
  // instead.
  std::optional<std::uint64_t> NumberOf(const LocatedStream& stream) const;
  CUresult Synchronize(CUstream stream) const;
  CUresult Synchronize() const;
  // Reports what went wrong, unless it is the caller's mistake.
  CUresult ToResult(thimble_status status);
  void Report(const std::string& text);
  std::string Named(const std::string& text) const;

  const DeviceIdentity identity_;
  const Settings& settings_;
  const std::string& driver_;
  LastFailure& failure_;  // shared by all devices
  std::mutex mutex_;      // guards making the arena, and the members below
  bool tried_ = false;
  std::vector<int> peers_;
  std::string last_report_;
  std::uint64_t allocations_at_last_report_ = 0;
  // Set before arena_, constant afterwards.
  CUcontext primary_ = nullptr;
  CUstream quiet_ = nullptr;  // never used, so a block freed on it is free at once
  std::unique_ptr<BlockSizes> sizes_;
  std::atomic<thimble_arena*> arena_{nullptr};
  std::mutex default_pool_mutex_;  // makes asking and setting atomic
  std::atomic<bool> serves_by_default_{true};
};

}  // namespace thimble::xla
