// Small blocks that a thread freed and will want again, kept by the thread so that neither needs
// the arena's mutex. For the layers below, a cached block is in use; GetStats() tells the two
// apart.
//
// Invariants:
//   M1  All blocks of a magazine were freed on its one stream, so they can be handed out there.
//   M2  contents().bytes is the sum over its blocks.
//   M3  A magazine belongs to at most one thread; its lock is contended only when the arena runs
//       out of memory and empties all magazines, or by what a thread does while it ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/arena/small_marks.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/base/mutex.h"
#include "allocator/stitch/block.h"

namespace thimble {

inline constexpr Bytes kMagazineLargest = kMarkClasses * kUnit;  // larger blocks are not cached
constexpr int SizeClassOf(Bytes bytes) { return static_cast<int>((bytes - 1) / kUnit); }
// How many blocks of a class a magazine keeps: so many bytes of each class, 16 times that in all.
inline constexpr Bytes kMagazineBytesPerClass = 128 * kKiB;
constexpr Bytes BytesOf(int size_class) { return (static_cast<Bytes>(size_class) + 1) * kUnit; }
constexpr int MagazineDepth(int size_class) {
  return static_cast<int>(kMagazineBytesPerClass / BytesOf(size_class));
}

class Magazine {
 public:
  // A block of `size_class` to use on `stream`, or none.
  Address Pop(int size_class, StreamId stream) {
    MutexLock lock(&mutex_);
    if (stream != stream_ || counts_[size_class] == 0) return Address();
    cached_bytes_ -= BytesOf(size_class);
    ++served_;
    return blocks_[size_class][--counts_[size_class]];
  }

  enum class Pushed : std::uint8_t { kCached, kNoRoom, kNotInUse };
  // Takes over the block at `address`, `offset` in the home space, if there is room for it and it
  // is still in use. Calls report() then, before anybody can get the block again. There is no room
  // while anybody waits for memory: whoever has emptied this magazine since is seen here.
  template <typename Report>
  Pushed Push(int size_class, StreamId stream, Address address, Bytes offset, SmallMarks* marks,
              const std::atomic<int>& waiters, Report report) {
    MutexLock lock(&mutex_);
    if (waiters.load(std::memory_order_relaxed) > 0) return Pushed::kNoRoom;
    if (cached_bytes_ == 0) stream_ = stream;
    if (stream != stream_ || counts_[size_class] == MagazineDepth(size_class))
      return Pushed::kNoRoom;
    if (!marks->ClaimForCache(offset, size_class)) return Pushed::kNotInUse;
    blocks_[size_class][counts_[size_class]++] = address;
    cached_bytes_ += BytesOf(size_class);
    report();
    return Pushed::kCached;
  }

  // Calls free(address, stream) for every block. It returns whether it took the block; one that it
  // did not take stays.
  template <typename Free>
  void Empty(Free free) {
    MutexLock lock(&mutex_);
    for (int size_class = 0; size_class < kMarkClasses; ++size_class) {
      int& count = counts_[size_class];
      while (count > 0 && free(blocks_[size_class][count - 1], stream_)) {
        --count;
        cached_bytes_ -= BytesOf(size_class);
      }
    }
  }

  struct Contents {
    Bytes bytes = 0;           // of the blocks cached now
    std::uint64_t blocks = 0;  // how many these are
    std::uint64_t served = 0;  // blocks ever handed out
  };
  Contents contents() {
    MutexLock lock(&mutex_);
    Contents contents = {cached_bytes_, 0, served_};
    for (const int count : counts_) contents.blocks += static_cast<std::uint64_t>(count);
    return contents;
  }

 private:
  Mutex mutex_{LockRank::kMagazine};
  StreamId stream_ ABSL_GUARDED_BY(mutex_){};
  Bytes cached_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t served_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<int, kMarkClasses> counts_ ABSL_GUARDED_BY(mutex_){};
  std::array<std::array<Address, MagazineDepth(0)>, kMarkClasses> blocks_ ABSL_GUARDED_BY(mutex_);
};

// All magazines of one arena. A thread gets one on first use and hands it on, contents and all,
// when it ends.
class MagazineRack {
 public:
  MagazineRack();
  ~MagazineRack();  // no thread uses the arena any more
  MagazineRack(const MagazineRack&) = delete;
  MagazineRack& operator=(const MagazineRack&) = delete;

  // The calling thread's magazine.
  Magazine* Mine() {
    if (current_.rack_id == id_) return current_.magazine;
    return FindMine();
  }

  // Calls visit(Magazine&) for every magazine, of living threads or not.
  template <typename Visit>
  void ForEach(Visit visit) {
    MutexLock lock(&mutex_);
    for (const std::unique_ptr<Magazine>& magazine : magazines_) visit(*magazine);
  }

 private:
  friend class ThreadMagazines;

  // What the calling thread used last. Plain data: reading it costs no guard.
  struct Current {
    std::uint64_t rack_id;
    Magazine* magazine;
  };
  static thread_local Current current_;

  Magazine* FindMine();
  Magazine* Acquire();
  void Return(Magazine* magazine);

  const std::uint64_t id_;  // never used again, so that a stale Current can match no other rack
  Mutex mutex_{LockRank::kRack};
  std::vector<std::unique_ptr<Magazine>> magazines_ ABSL_GUARDED_BY(mutex_);
  std::vector<Magazine*> idle_ ABSL_GUARDED_BY(mutex_);  // of threads that ended
};

}  // namespace thimble
