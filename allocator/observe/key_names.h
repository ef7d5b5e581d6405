// Names of those who ask for memory, by the key that is kept for each block.
//
// A request costs a hash of the name and, when the name was seen before, one load: no lock, no
// string. The table is bounded; one that finds no place keeps its key and has no name. Names are
// never removed: an op of yesterday's graph may hold memory today.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace thimble {

class KeyNames {
 public:
  static constexpr std::size_t kPlaces = 16384;
  static constexpr std::size_t kLongestName = 200;  // the end of a longer one is cut off

  KeyNames() = default;
  ~KeyNames();
  KeyNames(const KeyNames&) = delete;
  KeyNames& operator=(const KeyNames&) = delete;

  // The same in every process; 0 for "", and for nothing else.
  static std::uint64_t KeyOf(absl::string_view name);

  struct Remembered {
    std::uint64_t key = 0;
    bool is_new = false;
  };
  // The key of `name`, which is remembered if there is room; new if it was not known before.
  Remembered Remember(absl::string_view name);

  // "" if the key has no name. It stays where it is as long as this object.
  const char* NameOf(std::uint64_t key) const;

  // visit(key, name) for all of them.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Place& place : places_) {
      const std::string* const name = place.name.load(std::memory_order_acquire);
      if (name != nullptr) visit(place.key.load(std::memory_order_relaxed), *name);
    }
  }

 private:
  static constexpr std::size_t kProbes = 16;

  // Taken by its key first, then the name follows; a reader between the two sees no name.
  struct Place {
    std::atomic<std::uint64_t> key{0};
    std::atomic<const std::string*> name{nullptr};
  };
  std::array<Place, kPlaces> places_;
};

}  // namespace thimble
