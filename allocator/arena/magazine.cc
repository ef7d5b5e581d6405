#include "allocator/arena/magazine.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace thimble {
namespace {

// Which racks exist: a thread that ends must not touch a rack that is gone. Never destroyed, since
// threads may end after main() has returned.
struct Registry {
  Mutex mutex{LockRank::kRegistry};
  std::uint64_t next_id ABSL_GUARDED_BY(mutex) = 1;
  absl::flat_hash_map<std::uint64_t, MagazineRack*> racks ABSL_GUARDED_BY(mutex);
  const pid_t process = getpid();
};

Registry& GetRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

std::uint64_t Register(MagazineRack* rack) {
  Registry& registry = GetRegistry();
  MutexLock lock(&registry.mutex);
  registry.racks.emplace(registry.next_id, rack);
  return registry.next_id++;
}

}  // namespace

// The magazines of one thread, one per arena it has used.
class ThreadMagazines {
 public:
  // Hands them on. Not in a fork child: there, a lock may be held by a thread that does not exist.
  ~ThreadMagazines() {
    MagazineRack::current_ = {0, nullptr};
    Registry& registry = GetRegistry();
    if (registry.process != getpid()) return;
    MutexLock lock(&registry.mutex);
    for (const MagazineRack::Current& entry : entries_) {
      const auto rack = registry.racks.find(entry.rack_id);
      if (rack != registry.racks.end()) rack->second->Return(entry.magazine);
    }
  }

  Magazine* Find(std::uint64_t rack_id) const {
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& known) { return known.rack_id == rack_id; });
    return entry == entries_.end() ? nullptr : entry->magazine;
  }

  void Add(std::uint64_t rack_id, Magazine* magazine) {
    Registry& registry = GetRegistry();
    MutexLock lock(&registry.mutex);
    const auto is_gone = [&](const MagazineRack::Current& entry)
                             ABSL_NO_THREAD_SAFETY_ANALYSIS {  // the lock is held just above
                               return !registry.racks.contains(entry.rack_id);
                             };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_gone), entries_.end());
    entries_.push_back({rack_id, magazine});
  }

 private:
  std::vector<MagazineRack::Current> entries_;
};

namespace {

// A pointer and two bytes in all: thread-local storage of a library is scarce.
thread_local ThreadMagazines* mine = nullptr;
thread_local bool has_ended = false;

struct AtThreadEnd {
  ~AtThreadEnd() {
    has_ended = true;
    delete std::exchange(mine, nullptr);
  }
};

}  // namespace

thread_local MagazineRack::Current MagazineRack::current_ = {0, nullptr};

MagazineRack::MagazineRack() : id_(Register(this)) {}

MagazineRack::~MagazineRack() {
  Registry& registry = GetRegistry();
  MutexLock lock(&registry.mutex);
  registry.racks.erase(id_);
}

Magazine* MagazineRack::FindMine() {
  if (has_ended) {
    // Somebody's destructor runs after ours. Any magazine will do, since each has a lock.
    Magazine* const anyones = Acquire();
    Return(anyones);
    return anyones;
  }
  thread_local AtThreadEnd at_thread_end;
  if (mine == nullptr) mine = new ThreadMagazines;
  Magazine* magazine = mine->Find(id_);
  if (magazine == nullptr) {
    magazine = Acquire();
    mine->Add(id_, magazine);
  }
  current_ = {id_, magazine};
  return magazine;
}

Magazine* MagazineRack::Acquire() {
  MutexLock lock(&mutex_);
  if (idle_.empty()) {
    magazines_.push_back(std::make_unique<Magazine>());
    return magazines_.back().get();
  }
  Magazine* const magazine = idle_.back();
  idle_.pop_back();
  return magazine;
}

void MagazineRack::Return(Magazine* magazine) {
  MutexLock lock(&mutex_);
  idle_.push_back(magazine);
}

}  // namespace thimble
