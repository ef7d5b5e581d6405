// Uses of ranges of addresses that nobody holds any more. Ranges may overlap; of each stream only
// the last use of a byte counts, because its earlier ones are over when that is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simgpu/driver/range_map.h"

namespace simgpu {

using Sequence = std::uint64_t;  // counts the work of a stream, from 1 on

// Memory was given to work: the `sequence`-th on `stream`.
struct Use {
  int stream = 0;
  Sequence sequence = 0;
  const std::string* work = nullptr;  // what messages call it
  Address block = 0;                  // what it used
  Bytes bytes = 0;
};

// Adds `use`, unless there is a later one of the same stream.
void AddUse(const Use& use, std::vector<Use>* uses);

class Cells {
 public:
  void Add(Address begin, Bytes bytes, const std::vector<Use>& uses);
  // All uses of any byte of the range, which are forgotten then.
  std::vector<Use> Take(Address begin, Bytes bytes);

  std::size_t size() const { return cells_.size(); }

 private:
  struct Cell {
    Address end;
    std::vector<Use> uses;
  };
  using Map = std::map<Address, Cell>;

  // Makes `at` a border, if a cell reaches over it. The first cell at or behind `at`.
  Map::iterator Cut(Address at);

  Map cells_;
};

}  // namespace simgpu
