// DecodeLearned: any file is either refused with the reason, or equals what EncodeLearned would
// write, and a table of sites can be made of it.
#include "allocator/plan/plan_file.h"

#include <string>

#include "allocator/base/stable_hash.h"
#include "allocator/plan/site_table.h"
#include "tests/fuzz/input.h"

namespace {

constexpr std::size_t kHeaderBytes = 40;

// With the right checksum, or nothing but the first lines of the decoder would ever be tried.
std::string WithChecksum(absl::string_view input) {
  std::string file(input);
  if (file.size() < kHeaderBytes) return file;
  const std::uint64_t checksum = thimble::StableHash(absl::string_view(file).substr(kHeaderBytes));
  file.replace(kHeaderBytes - sizeof(checksum), sizeof(checksum),
               std::string(reinterpret_cast<const char*>(&checksum), sizeof(checksum)));
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  for (const std::string& file : {std::string(input), WithChecksum(input)}) {
    const auto learned = thimble::DecodeLearned(file);
    if (!learned.ok()) {
      FUZZ_EXPECT(learned.status().code() == absl::StatusCode::kInvalidArgument);
      FUZZ_EXPECT(!learned.status().message().empty());
      continue;
    }
    FUZZ_EXPECT(thimble::EncodeLearned(*learned) == file);
    thimble::SiteTable table;
    table.Restore(*learned);
    table.CheckInvariants();
    FUZZ_EXPECT(table.size() == learned->sites.size());
  }
  return 0;
}
