#include "tests/simgpu/driver/paging.h"

#include <algorithm>

namespace simgpu {
namespace {

// Published measurements of a group of faults are 20 to 50 us: the device reports them, the driver
// unmaps, copies, maps, and lets the device go on.
constexpr double kFaultSeconds = 35e-6;

// Calls `visit` for each page with a byte of the range.
template <typename Visit>
void ForEachPage(Address begin, Bytes bytes, Visit visit) {
  const Address end = begin + bytes;
  for (Address page = begin / kPageBytes * kPageBytes; page < end; page += kPageBytes) visit(page);
}

}  // namespace

Movement& Movement::operator+=(const Movement& other) {
  faults += other.faults;
  in += other.in;
  out += other.out;
  return *this;
}

double SecondsOf(const Movement& movement, double in_bytes_per_second,
                 double out_bytes_per_second) {
  return static_cast<double>(movement.faults) * kFaultSeconds +
         static_cast<double>(movement.in) / in_bytes_per_second +
         static_cast<double>(movement.out) / out_bytes_per_second;
}

Movement Paging::Touch(int device, Address begin, Bytes bytes, Bytes room) {
  Movement all;
  ForEachPage(begin, bytes, [&](Address page) { all += Bring(page, device, room); });
  At(device).counts.moved += all;
  return all;
}

Movement Paging::Prefetch(int to, Address begin, Bytes bytes, Bytes room) {
  Movement all;
  ForEachPage(begin, bytes, [&](Address page) {
    if (to != kHost) {
      all += Bring(page, to, room);
      return;
    }
    const auto found = pages_.find(page);
    if (found == pages_.end() || found->second.where == kHost) return;
    At(found->second.where).counts.moved.out += kPageBytes;
    Leave(found->second);
    found->second.where = kHost;
    all.out += kPageBytes;
  });
  all.faults = 0;
  if (to != kHost) {
    At(to).counts.moved += all;
    At(to).counts.prefetched += all.in;
  }
  return all;
}

Movement Paging::Bring(Address page, int device, Bytes room) {
  Movement movement;
  Device& target = At(device);
  const auto found = pages_.find(page);
  if (found != pages_.end() && found->second.where == device) {
    target.newest_first.splice(target.newest_first.begin(), target.newest_first,
                               found->second.position);
    return movement;
  }
  movement.faults = 1;
  if (found != pages_.end()) {
    movement.in = kPageBytes;
    if (found->second.where != kHost) Leave(found->second);
    pages_.erase(found);
  }
  movement += MakeRoom(device, room < kPageBytes ? 0 : room - kPageBytes);
  if (kPageBytes > room) {  // it is used and goes back at once
    movement.out += kPageBytes;
    pages_[page] = {kHost, {}};
    return movement;
  }
  target.newest_first.push_front(page);
  target.counts.resident += kPageBytes;
  target.counts.peak = std::max(target.counts.peak, target.counts.resident);
  pages_[page] = {device, target.newest_first.begin()};
  return movement;
}

Movement Paging::Shrink(int device, Bytes room) {
  const Movement movement = MakeRoom(device, room);
  At(device).counts.moved += movement;
  return movement;
}

Movement Paging::MakeRoom(int device, Bytes most) {
  Movement movement;
  Device& from = At(device);
  while (from.counts.resident > most) {
    Page& oldest = pages_[from.newest_first.back()];
    Leave(oldest);
    oldest.where = kHost;
    movement.out += kPageBytes;
  }
  return movement;
}

void Paging::Leave(const Page& page) {
  Device& device = At(page.where);
  device.newest_first.erase(page.position);
  device.counts.resident -= kPageBytes;
}

void Paging::Forget(Address begin, Bytes bytes) {
  ForEachPage(begin, bytes, [&](Address page) {
    const auto found = pages_.find(page);
    if (found == pages_.end()) return;
    if (found->second.where != kHost) Leave(found->second);
    pages_.erase(found);
  });
}

}  // namespace simgpu
