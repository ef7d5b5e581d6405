#include "allocator/observe/key_names.h"

#include "allocator/base/stable_hash.h"

namespace thimble {

KeyNames::~KeyNames() {
  for (Place& place : places_) delete place.name.load();
}

std::uint64_t KeyNames::KeyOf(absl::string_view name) {
  return name.empty() ? 0 : StableHash(name) | 1;
}

KeyNames::Remembered KeyNames::Remember(absl::string_view name) {
  const std::uint64_t key = KeyOf(name);
  if (key == 0) return {};
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Place& place = places_[(key + 2 * probe) / 2 % kPlaces];
    std::uint64_t found = place.key.load(std::memory_order_relaxed);
    if (found == key) return {key};
    if (found != 0) continue;
    if (place.key.compare_exchange_strong(found, key)) {
      place.name.store(new std::string(name.substr(0, kLongestName)), std::memory_order_release);
      return {key, /*is_new=*/true};
    }
    if (found == key) return {key};  // another thread was faster
  }
  return {key};
}

const char* KeyNames::NameOf(std::uint64_t key) const {
  if (key == 0) return "";
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const Place& place = places_[(key + 2 * probe) / 2 % kPlaces];
    if (place.key.load(std::memory_order_relaxed) != key) continue;
    const std::string* const name = place.name.load(std::memory_order_acquire);
    return name == nullptr ? "" : name->c_str();
  }
  return "";
}

}  // namespace thimble
