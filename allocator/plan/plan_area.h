// The plan area: the bytes that a plan hands out itself instead of the heap. The borders of all
// places cut it into cells, so that testing, taking and leaving a place each touch one row of
// bytes.
//
// A cell is open if it belongs to the plan and is free. Cells in use are closed, and so are those
// that belong to the heap: at first, all of them.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/vmm/alias_space.h"

namespace thimble {

class PlanArea {
 public:
  // A row of cells, by the indices of its first and its last border.
  struct Cells {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  // Starts anew with these borders, in any order. All cells are closed.
  void Reset(std::vector<Bytes> borders);
  // Closes every cell.
  void CloseAll() { std::fill(open_.begin(), open_.end(), kClosed); }
  // Both ends of `place` are borders.
  Cells CellsOf(Extent place) const { return {IndexOf(place.begin), IndexOf(place.end)}; }
  // Makes `at` a border. Returns its index if it is new; the indices of all higher borders have
  // then grown by one.
  std::optional<std::uint32_t> AddBorder(Bytes at);

  bool IsOpen(Cells cells) const {
    return std::memchr(&open_[cells.begin], kClosed, cells.end - cells.begin) == nullptr;
  }
  void Close(Cells cells) { Set(cells, kClosed); }
  void Open(Cells cells) { Set(cells, kOpen); }
  // Calls open(extent) for each row of closed cells in `cells` and opens the row if it returns
  // true. Stops at the first false. Returns whether all cells are open now.
  template <typename OpenExtent>
  bool OpenRest(Cells cells, OpenExtent open) {
    for (Cells rest = NextClosed(cells); rest.begin < rest.end;
         rest = NextClosed({rest.end, cells.end})) {
      if (!open(Extent{borders_[rest.begin], borders_[rest.end]})) return false;
      Open(rest);
    }
    return true;
  }

  Bytes OpenBytes() const;

 private:
  static constexpr char kClosed = 0;
  static constexpr char kOpen = 1;

  std::uint32_t IndexOf(Bytes border) const;
  Cells NextClosed(Cells cells) const;
  void Set(Cells cells, char state) {
    std::memset(&open_[cells.begin], state, cells.end - cells.begin);
  }

  std::vector<Bytes> borders_;  // rising; cell i lies between borders i and i + 1
  std::vector<char> open_;      // by cell
};

}  // namespace thimble
