// Names of the ops that asked for memory, by the key that the core keeps for each block.
//
// A request costs a hash of the name and, when the name was seen before, one load: no lock, no
// string. The table is bounded; an op that finds no place keeps its key and has no name. Names are
// never removed: an op of yesterday's graph may hold memory today.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace thimble::tf {

class KeyNames {
 public:
  static constexpr std::size_t kPlaces = 16384;
  static constexpr std::size_t kLongestName = 200;  // the end of a longer one is cut off

  KeyNames() = default;
  ~KeyNames();
  KeyNames(const KeyNames&) = delete;
  KeyNames& operator=(const KeyNames&) = delete;

  // The key of `name`, which is remembered if there is room. 0 for "", and for nothing else.
  std::uint64_t Remember(absl::string_view name);

  // "" if the key has no name.
  std::string NameOf(std::uint64_t key) const;

 private:
  static constexpr std::size_t kProbes = 16;

  // Taken by its key first, then the name follows; a reader between the two sees no name.
  struct Place {
    std::atomic<std::uint64_t> key{0};
    std::atomic<const std::string*> name{nullptr};
  };
  std::array<Place, kPlaces> places_;
};

}  // namespace thimble::tf
