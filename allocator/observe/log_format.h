// An event log as it is in its file: a header, then records of one size, little endian.
//
// The text of an event follows it in records of kind kText, kTextBytes in each; its length is in
// `stream`. So a log that was cut off can be read up to where it was.
//
// The newest records of a log that is being written are in a file beside it, the tail
// (log_tail.h), which is kTailEvents records and nothing else: record n is the (n % kTailEvents)-th
// there until it is in the log, and its check tells whether it still is. Who reads takes the tail
// first, then the log, and goes on in the tail where the log ends.
//
// Versions: 1 has no kinds after kCopy. 2 has all. 3 has checks, and a longer header that says how
// and where the log ended. A reader of 3 reads 1 and 2 as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "allocator/base/event.h"

namespace thimble::log_format {

struct Record {
  std::uint32_t kind;
  std::uint32_t check;  // CheckOf(); 0 before version 3
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint64_t key;
  std::uint64_t time_ns;
};

enum class End : std::uint16_t {
  kOpen = 0,      // it is being written, or its process was killed
  kComplete = 1,  // all of it is there
  kBound = 2,     // as many events as were asked for; since version 3, as the next
  kFailed = 3,    // it could not be written any more
};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint16_t record_bytes;
  End end;  // written last, together with `records`
  // From here on since version 3.
  std::uint64_t records;  // with kComplete and kBound
  std::uint64_t id;       // a number that no other log has: part of every check
};
static_assert(sizeof(Header) == 32 && sizeof(Record) == 48, "the file has no padding");

inline constexpr std::array<char, 8> kMagic = {'T', 'H', 'I', 'M', 'B', 'L', 'E', 'L'};
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::size_t kOldHeaderBytes = offsetof(Header, records);

inline constexpr std::uint64_t kTailEvents = 4096;

// All of a record but its kind and its check.
inline constexpr std::size_t kTextBytes = sizeof(Record) - sizeof(std::uint64_t);

constexpr EventKind LastKindOf(std::uint32_t version) {
  return version == 1 ? EventKind::kCopy : EventKind::kLast;
}
constexpr bool HasText(EventKind kind) {
  return kind == EventKind::kName || kind == EventKind::kOom;
}

// Of a record that is the `number`-th of its log, counted from 0. Whatever changes one word of it
// changes the check: each is multiplied by an odd number of its own. Not for defence.
constexpr std::uint32_t CheckOf(const Record& record, std::uint64_t number, std::uint64_t id) {
  const std::uint64_t sum =
      (id ^ number) * 0xD6E8FEB86659FD93u + record.kind * 0x9E3779B97F4A7C15u +
      record.address * 0xBF58476D1CE4E5B9u + record.bytes * 0x94D049BB133111EBu +
      record.stream * 0xC2B2AE3D27D4EB4Fu + record.key * 0xA0761D6478BD642Fu +
      record.time_ns * 0xE7037ED1A0B428DBu;
  return static_cast<std::uint32_t>(sum >> 32);
}

}  // namespace thimble::log_format
