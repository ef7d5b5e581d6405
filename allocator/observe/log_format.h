// The file format of an event log: a header, then records of one size, little endian.
//
// The text of an event follows it in records of kind kText, kTextBytes in each; its length is in
// `stream`. So a log that was cut off can be read up to the cut.
//
// While a log is being written, its newest records are in a file beside it, the tail (log_tail.h),
// which holds exactly kTailEvents records. Record n is at index n % kTailEvents there until it is
// in the log; its check tells whether it was overwritten. A reader copies the tail first, then
// reads the log, and continues in the tail where the log ends.
//
// Versions: 1 has no kinds after kCopy. 2 has all. 3 has checks, and a longer header that says how
// and where the log ended. Readers of version 3 read 1 and 2 as well.
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
  kComplete = 1,  // the log has all events
  kBound = 2,     // it reached its bound (option log_events); since version 3
  kFailed = 3,    // a write failed; since version 3
};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint16_t record_bytes;
  End end;  // written last, together with `records`
  // Since version 3:
  std::uint64_t records;  // with kComplete and kBound
  std::uint64_t id;       // a number that no other log has: part of every check
};
static_assert(sizeof(Header) == 32 && sizeof(Record) == 48, "the file has no padding");

inline constexpr std::array<char, 8> kMagic = {'T', 'H', 'I', 'M', 'B', 'L', 'E', 'L'};
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::size_t kOldHeaderBytes = offsetof(Header, records);

inline constexpr std::uint64_t kTailEvents = 4096;

// A record without its kind and check.
inline constexpr std::size_t kTextBytes = sizeof(Record) - sizeof(std::uint64_t);

constexpr EventKind LastKindOf(std::uint32_t version) {
  return version == 1 ? EventKind::kCopy : EventKind::kLast;
}
constexpr bool HasText(EventKind kind) {
  return kind == EventKind::kName || kind == EventKind::kOom;
}

// The check of a record with index `number` in its log, counted from 0. Any change of one word
// changes the check, because each word is multiplied by a different odd number. It does not resist
// attack.
constexpr std::uint32_t CheckOf(const Record& record, std::uint64_t number, std::uint64_t id) {
  const std::uint64_t sum =
      (id ^ number) * 0xD6E8FEB86659FD93u + record.kind * 0x9E3779B97F4A7C15u +
      record.address * 0xBF58476D1CE4E5B9u + record.bytes * 0x94D049BB133111EBu +
      record.stream * 0xC2B2AE3D27D4EB4Fu + record.key * 0xA0761D6478BD642Fu +
      record.time_ns * 0xE7037ED1A0B428DBu;
  return static_cast<std::uint32_t>(sum >> 32);
}

}  // namespace thimble::log_format
