// What a planner has learned, as a file: the sites there are, who was there at the same time, and
// their places, from the beginning of the region on.
//
// File, little endian: magic, version, size of a chunk, number of sites, checksum of what follows;
// then every site; then a row of bits for every site.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/bytes.h"

namespace thimble {

inline constexpr Bytes kNoPlace = ~Bytes{0};

struct LearnedSite {
  std::uint64_t key = 0;
  Bytes bytes = 0;
  bool recurs = false;
  Bytes place = kNoPlace;
};

struct Learned {
  Bytes chunk_bytes = 0;           // which blocks are small depends on it
  std::vector<LearnedSite> sites;  // those with the same key and size by rank
  // One row for each: bit b of row a (word b / 64, bit b % 64) says whether a and b were taken at
  // once. Symmetric.
  std::vector<std::uint64_t> conflicts;

  std::size_t row_words() const { return (sites.size() + 63) / 64; }
  bool AreInConflict(std::size_t a, std::size_t b) const {
    return (conflicts[a * row_words() + b / 64] >> b % 64 & 1) != 0;
  }
  void AddConflict(std::size_t a, std::size_t b) {
    conflicts[a * row_words() + b / 64] |= std::uint64_t{1} << b % 64;
    conflicts[b * row_words() + a / 64] |= std::uint64_t{1} << a % 64;
  }
};

std::string EncodeLearned(const Learned& learned);
// Anything but what EncodeLearned() makes is refused with the reason.
absl::StatusOr<Learned> DecodeLearned(absl::string_view file);

// The errors name the file. A file is written whole or not at all.
absl::StatusOr<Learned> ReadPlanFile(const std::string& path);
absl::Status WritePlanFile(const Learned& learned, const std::string& path);

}  // namespace thimble
