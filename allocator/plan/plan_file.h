// What a planner has learned, as a file: the sites, which of them were in use at the same time, and
// their places, counted from the start of the region.
//
// File, little endian: magic, version, size of a chunk, number of sites, checksum of the rest; then
// every site; then a row of bits for every site.
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
  Bytes chunk_bytes = 0;           // decides which blocks are small
  std::vector<LearnedSite> sites;  // sites of the same key and size are in order of rank
  // One row per site: bit b of row a (word b / 64, bit b % 64) says whether a and b were taken at
  // the same time. Symmetric.
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
// Refuses anything that EncodeLearned() did not make, with the reason.
absl::StatusOr<Learned> DecodeLearned(absl::string_view file);

// Errors name the file. WritePlanFile() writes the whole file or none.
absl::StatusOr<Learned> ReadPlanFile(const std::string& path);
absl::Status WritePlanFile(const Learned& learned, const std::string& path);

}  // namespace thimble
