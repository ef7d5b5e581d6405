// Values by half-open ranges of addresses that do not overlap.
#pragma once

#include <map>
#include <utility>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

using Address = std::uint64_t;

template <typename T>
class RangeMap {
 public:
  struct Entry {
    Bytes bytes;
    T value;
  };
  using Map = std::map<Address, Entry>;
  using Iterator = typename Map::iterator;

  // Nothing overlaps [begin, begin + bytes).
  void Insert(Address begin, Bytes bytes, T value) {
    map_.emplace(begin, Entry{bytes, std::move(value)});
  }

  // The range that holds `address`, or end().
  Iterator Holding(Address address) {
    Iterator next = map_.upper_bound(address);
    if (next == map_.begin()) return map_.end();
    --next;
    return address - next->first < next->second.bytes ? next : map_.end();
  }

  // The first range that ends behind `address`, or end().
  Iterator From(Address address) {
    const Iterator holding = Holding(address);
    return holding != map_.end() ? holding : map_.lower_bound(address);
  }

  bool Overlaps(Address begin, Bytes bytes) {
    const Iterator first = From(begin);
    return first != map_.end() && first->first < begin + bytes;
  }

  Iterator Exactly(Address begin) { return map_.find(begin); }
  Iterator begin() { return map_.begin(); }
  Iterator end() { return map_.end(); }
  Iterator Erase(Iterator position) { return map_.erase(position); }
  std::size_t size() const { return map_.size(); }
  void Clear() { map_.clear(); }

 private:
  Map map_;
};

}  // namespace simgpu
