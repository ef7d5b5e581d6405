// The names of callers, such as ops, by key. Each block keeps the key of its caller.
//
// A request costs a hash of the name and, for a known name, one load: no lock, no string. The table
// is bounded: if it is full, a new key has no name. Names are never removed, because an op of an
// older graph may still hold memory.
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
  static constexpr std::size_t kLongestName = 200;  // longer names are cut

  KeyNames() = default;
  ~KeyNames();
  KeyNames(const KeyNames&) = delete;
  KeyNames& operator=(const KeyNames&) = delete;

  // The same in every process. 0 only for "".
  static std::uint64_t KeyOf(absl::string_view name);

  struct Remembered {
    std::uint64_t key = 0;
    bool is_new = false;
  };
  // Returns the key of `name` and remembers the name if there is room. `is_new` if it was unknown.
  Remembered Remember(absl::string_view name);

  // "" if the key has no name. The pointer is valid as long as this object.
  const char* NameOf(std::uint64_t key) const;

  // Calls visit(key, name) for every name.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Place& place : places_) {
      const std::string* const name = place.name.load(std::memory_order_acquire);
      if (name != nullptr) visit(place.key.load(std::memory_order_relaxed), *name);
    }
  }

 private:
  static constexpr std::size_t kProbes = 16;

  // A writer stores the key first, then the name. In between, readers see no name.
  struct Place {
    std::atomic<std::uint64_t> key{0};
    std::atomic<const std::string*> name{nullptr};
  };
  std::array<Place, kPlaces> places_;
};

}  // namespace thimble
