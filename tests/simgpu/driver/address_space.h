// The device addresses of a process: one area that nobody but the simulator can touch, as a
// program cannot touch the memory of a GPU. A read or write of it on the host is a segmentation
// fault.
//
// Addresses are handed out in a circle. Freed ones are reused last, so that the use of a freed
// address is detected instead of hitting a newer block.
//
// Not thread-safe: Memory holds its lock.
#pragma once

#include <deque>
#include <string>

#include "tests/simgpu/driver/range_map.h"

namespace simgpu {

class AddressSpace {
 public:
  // As much as the machine allows, up to 32 TiB.
  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  bool Contains(Address address) const { return address - base_ < bytes_; }

  // 0 if there is no room. `alignment` is a power of two.
  Address Take(Bytes bytes, Bytes alignment);
  // `story` says what was there and who freed it.
  void Give(Address address, std::string story);

  // The story of the last block at an address that is not in use; "" if there was none.
  std::string StoryOf(Address address);

 private:
  Address FirstGap(Address from, Address to, Bytes bytes, Bytes alignment);
  void Forget(Address address, Bytes bytes);

  Bytes bytes_ = 0;
  Address base_ = 0;
  Address cursor_ = 0;  // where the search for a gap starts
  RangeMap<char> taken_;
  RangeMap<std::string> freed_;
  std::deque<Address> freed_order_;
};

}  // namespace simgpu
