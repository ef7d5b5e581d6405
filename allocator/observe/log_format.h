// An event log as it is in its file: a header, then records of one size, little endian.
//
// The text of an event follows it in records of kind kText, kTextBytes in each; its length is in
// `stream`. So a log that was cut off can be read up to where it was.
//
// Versions: 1 has no kinds after kCopy. 2 has all; a reader of 2 reads 1 as well.
#pragma once

#include <array>
#include <cstdint>

#include "allocator/base/event.h"

namespace thimble::log_format {

struct Record {
  std::uint64_t kind;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint64_t key;
  std::uint64_t time_ns;
};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint16_t record_bytes;
  std::uint16_t complete;  // written last
};
static_assert(sizeof(Header) == 16 && sizeof(Record) == 48, "the file has no padding");

inline constexpr std::array<char, 8> kMagic = {'T', 'H', 'I', 'M', 'B', 'L', 'E', 'L'};
inline constexpr std::uint32_t kVersion = 2;
inline constexpr Header kHeader = {kMagic, kVersion, sizeof(Record), 0};

// All of a record but its kind.
inline constexpr std::size_t kTextBytes = sizeof(Record) - sizeof(std::uint64_t);

constexpr EventKind LastKindOf(std::uint32_t version) {
  return version == 1 ? EventKind::kCopy : EventKind::kLast;
}
constexpr bool HasText(EventKind kind) {
  return kind == EventKind::kName || kind == EventKind::kOom;
}

}  // namespace thimble::log_format
