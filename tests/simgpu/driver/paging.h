// Where the pages of managed memory are: unified memory as a model.
//
// A page is on one device, on the host, or nowhere until something touches it. It moves to whoever
// touches it. A device has as much room as its other memory leaves; who comes in pushes out the
// pages that were touched longest ago, and these go to the host. So a program that touches more in
// a circle than fits moves every page every time, as on a real device.
//
// A page is 2 MiB: NVIDIA's driver keeps residency in blocks of that size, and its prefetcher fills
// a block that is touched densely, as tensors are. What the host itself touches cannot be seen
// here, and hints (cuMemAdvise) change nothing.
//
// Not thread-safe: Memory holds its lock.
#pragma once

#include <list>
#include <unordered_map>
#include <vector>

#include "tests/simgpu/driver/range_map.h"

namespace simgpu {

inline constexpr Bytes kPageBytes = Bytes{2} << 20;

// What touching some bytes made the pages do.
struct Movement {
  std::uint64_t faults = 0;  // pages that were not there
  Bytes in = 0;              // to devices
  Bytes out = 0;             // to the host

  Movement& operator+=(const Movement& other);
};

// The time that such a movement takes: a group of faults for each page, and both directions of the
// bus one after the other, because a page comes in when another one has left. A touched page that
// is there costs nothing.
double SecondsOf(const Movement& movement, double in_bytes_per_second, double out_bytes_per_second);

// Everything since the beginning, and what is on a device now.
struct PageCounts {
  Movement moved;
  Bytes prefetched = 0;  // of moved.in, asked for by the program
  Bytes resident = 0;
  Bytes peak = 0;
};

class Paging {
 public:
  explicit Paging(int devices) : devices_(static_cast<std::size_t>(devices)) {}

  // `device` uses [begin, begin + bytes). Managed memory may take `room` bytes of it.
  Movement Touch(int device, Address begin, Bytes bytes, Bytes room);
  // The program asks for them before they are used, so nothing faults. `to` may be kHost.
  Movement Prefetch(int to, Address begin, Bytes bytes, Bytes room);
  // Other memory has left only `room` bytes of the device.
  Movement Shrink(int device, Bytes room);
  // The memory is freed.
  void Forget(Address begin, Bytes bytes);

  const PageCounts& Of(int device) const {
    return devices_[static_cast<std::size_t>(device)].counts;
  }

 private:
  struct Page {
    int where;  // a device, or kHost
    std::list<Address>::iterator position;
  };
  struct Device {
    std::list<Address> newest_first;
    PageCounts counts;
  };

  Movement Bring(Address page, int device, Bytes room);
  // Pages go to the host until no more than `most` bytes of them are on the device.
  Movement MakeRoom(int device, Bytes most);
  void Leave(const Page& page);
  Device& At(int device) { return devices_[static_cast<std::size_t>(device)]; }

  std::vector<Device> devices_;
  std::unordered_map<Address, Page> pages_;  // those that were touched, by their address
};

}  // namespace simgpu
