#include "allocator/plan/plan_file.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "allocator/base/stable_hash.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/site_table.h"
#include "allocator/stitch/block.h"

namespace thimble {
namespace {

struct Header {
  std::array<char, 8> magic;
  std::uint64_t version;
  std::uint64_t chunk_bytes;
  std::uint64_t sites;
  std::uint64_t checksum;
};
struct Record {
  std::uint64_t key;
  std::uint64_t bytes;
  std::uint64_t recurs;
  std::uint64_t place;
};
static_assert(sizeof(Header) == 40 && sizeof(Record) == 32, "the file has no padding");
constexpr std::array<char, 8> kMagic = {'T', 'H', 'I', 'M', 'B', 'L', 'E', 'P'};
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMostBytes =
    sizeof(Header) +
    SiteTable::kMaxSites * (sizeof(Record) + SiteTable::kMaxSites / 64 * sizeof(std::uint64_t));

constexpr Bytes kLargestSite = plan::kMaxSize / kUnit * kUnit;
constexpr Bytes kHighestPlace = plan::kMaxTotalSize / 2;

absl::Status Damaged(absl::string_view how) {
  return absl::InvalidArgumentError(absl::StrCat("is damaged: ", how));
}

template <typename T>
void Append(const T* items, std::size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(items), count * sizeof(T));
}

absl::Status CheckConflicts(const Learned& learned) {
  const std::size_t count = learned.sites.size();
  for (std::size_t a = 0; a < count; ++a) {
    if (learned.AreInConflict(a, a)) {
      return Damaged(absl::StrCat("site ", a, " is in conflict with itself"));
    }
    for (std::size_t b = 0; b < a; ++b) {
      if (learned.AreInConflict(a, b) != learned.AreInConflict(b, a)) {
        return Damaged(absl::StrCat("sites ", a, " and ", b, " disagree about their conflict"));
      }
    }
    for (std::size_t b = count; b < 64 * learned.row_words(); ++b) {
      if (learned.AreInConflict(a, b)) {
        return Damaged(
            absl::StrCat("site ", a, " is in conflict with site ", b, ", but there are ", count));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeLearned(const Learned& learned) {
  std::string body;
  for (const LearnedSite& site : learned.sites) {
    const Record record = {site.key, site.bytes, site.recurs ? 1u : 0u, site.place};
    Append(&record, 1, &body);
  }
  Append(learned.conflicts.data(), learned.conflicts.size(), &body);
  const Header header = {kMagic, kVersion, learned.chunk_bytes, learned.sites.size(),
                         StableHash(body)};
  std::string file;
  Append(&header, 1, &file);
  return file + body;
}

absl::StatusOr<Learned> DecodeLearned(absl::string_view file) {
  Header header{};
  if (file.size() < sizeof(header)) return Damaged("it is shorter than its header");
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.magic != kMagic) return absl::InvalidArgumentError("is not a plan file of Thimble");
  if (header.version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("has version ", header.version,
                                                   ", but this program reads version ", kVersion));
  }
  if (header.sites > SiteTable::kMaxSites) {
    return Damaged(absl::StrCat(header.sites, " sites are more than ", SiteTable::kMaxSites));
  }
  Learned learned;
  learned.chunk_bytes = header.chunk_bytes;
  learned.sites.resize(header.sites);
  learned.conflicts.resize(header.sites * learned.row_words());
  const absl::string_view body = file.substr(sizeof(header));
  const std::size_t records = header.sites * sizeof(Record);
  const std::size_t rows = learned.conflicts.size() * sizeof(std::uint64_t);
  if (body.size() != records + rows) {
    return Damaged(absl::StrCat("it has ", file.size(), " bytes instead of ",
                                sizeof(header) + records + rows));
  }
  if (StableHash(body) != header.checksum) return Damaged("its checksum is wrong");
  for (std::size_t i = 0; i < learned.sites.size(); ++i) {
    Record record{};
    std::memcpy(&record, body.data() + i * sizeof(record), sizeof(record));
    if (record.bytes == 0 || record.bytes % kUnit != 0 || record.bytes > kLargestSite) {
      return Damaged(absl::StrCat("site ", i, " has ", record.bytes, " bytes"));
    }
    if (record.recurs > 1) return Damaged(absl::StrCat("site ", i, " has a flag that is no flag"));
    if (record.place != kNoPlace && (record.place % kUnit != 0 || record.place > kHighestPlace)) {
      return Damaged(absl::StrCat("site ", i, " has the place ", record.place));
    }
    learned.sites[i] = {record.key, record.bytes, record.recurs == 1, record.place};
  }
  if (rows > 0) std::memcpy(learned.conflicts.data(), body.data() + records, rows);
  THIMBLE_RETURN_IF_ERROR(CheckConflicts(learned));
  return learned;
}

absl::StatusOr<Learned> ReadPlanFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string file, ReadWholeFile(path, kMostBytes));
  absl::StatusOr<Learned> learned = DecodeLearned(file);
  if (learned.ok()) return learned;
  return absl::Status(learned.status().code(),
                      absl::StrCat("'", path, "' ", learned.status().message()));
}

absl::Status WritePlanFile(const Learned& learned, const std::string& path) {
  return WriteWholeFile(EncodeLearned(learned), path);
}

}  // namespace thimble
