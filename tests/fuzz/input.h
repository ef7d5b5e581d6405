// Turns the bytes of a fuzzer into the values that a target needs, and has the only way for a
// target to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace thimble {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }

  // Zero when nothing is left.
  std::uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::uint64_t Word() {
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  bool Bit() { return (Byte() & 1) != 0; }
  std::size_t Index(std::size_t count) { return count == 0 ? 0 : Byte() % count; }

  // Any size, small ones as likely as large ones, and those next to a power of two above all.
  std::uint64_t Size(int max_log) {
    const int log = Byte() % (max_log + 1);
    const auto offset = static_cast<std::int8_t>(Byte());
    return (std::uint64_t{1} << log) + static_cast<std::uint64_t>(std::int64_t{offset});
  }

  absl::string_view Rest() const {
    return absl::string_view(reinterpret_cast<const char*>(data_), size_);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// Stops the process, so that the fuzzer keeps the input.
#define FUZZ_EXPECT(condition)                                                     \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

}  // namespace thimble
