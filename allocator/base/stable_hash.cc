#include "allocator/base/stable_hash.h"

#include <cstring>

namespace thimble {
namespace {

// Every bit of the input changes about half of the output bits: multiplications carry bits up,
// shifts bring them down again.
std::uint64_t Mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ x >> 32;
}

}  // namespace

std::uint64_t StableHash(absl::string_view text) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie in memory");
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t hash = Mix(text.size() + 1);
  const auto add = [&](std::uint64_t word) { hash = Mix(hash + 0x9E3779B97F4A7C15u + word); };
  std::size_t at = 0;
  for (; at + kWord <= text.size(); at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, kWord);  // the size is fixed: one load
    add(word);
  }
  if (at < text.size()) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, text.data() + at, text.size() - at);
    add(rest);
  }
  return hash;
}

}  // namespace thimble
