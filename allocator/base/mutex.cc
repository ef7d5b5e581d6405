#include "allocator/base/mutex.h"

#include "allocator/base/check.h"

namespace thimble {

#ifdef THIMBLE_DEBUG
namespace {
// One bit per rank held by this thread: a higher bit than all others is the only legal next one.
thread_local std::uint32_t held_ranks = 0;
}  // namespace

void NoteLock(LockRank rank) {
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(rank);
  THIMBLE_CHECK(held_ranks < bit, "a lock was taken out of rank order");
  held_ranks |= bit;
}

void NoteUnlock(LockRank rank) { held_ranks &= ~(std::uint32_t{1} << static_cast<unsigned>(rank)); }
#else
void NoteLock(LockRank) {}
void NoteUnlock(LockRank) {}
#endif

}  // namespace thimble
