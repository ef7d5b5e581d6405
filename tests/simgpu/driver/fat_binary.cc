#include "tests/simgpu/driver/fat_binary.h"

#include <cstring>

namespace simgpu {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kElf = 2;  // kind of an entry; 1 is PTX
constexpr std::uint64_t kIsCompressed = 0x2000;

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // behind the header
};

// What is known of an entry's header. Its payload follows, padded to `payload_bytes`.
struct Entry {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t compressed_bytes;
  std::uint32_t options;
  std::uint32_t code_version;
  std::uint32_t capability;
  std::uint64_t name;
  std::uint64_t flags;
  std::uint64_t unknown;
  std::uint64_t bytes;  // when it is no longer compressed
};
static_assert(sizeof(Entry) == 64);

template <typename T>
T Read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

bool IsBetter(int candidate, int best, int capability) {
  const bool fits = candidate <= capability;
  const bool best_fits = best <= capability;
  if (fits != best_fits) return fits;
  return fits ? candidate > best : candidate < best;
}

// Reads a length that goes on behind four bits that are all set.
bool ReadLength(const char** at, const char* end, std::size_t* length) {
  if (*length != 15) return true;
  while (*at < end) {
    const auto more = static_cast<unsigned char>(*(*at)++);
    *length += more;
    if (more != 255) return true;
  }
  return false;
}

}  // namespace

bool DecompressLz4(const char* block, std::size_t bytes, std::vector<char>* out) {
  const char* at = block;
  const char* const end = block + bytes;
  std::size_t done = 0;
  while (at < end) {
    const auto token = static_cast<unsigned char>(*at++);
    std::size_t literals = token >> 4;
    if (!ReadLength(&at, end, &literals)) return false;
    if (literals > static_cast<std::size_t>(end - at) || literals > out->size() - done)
      return false;
    std::memcpy(out->data() + done, at, literals);
    at += literals;
    done += literals;
    if (at == end) break;  // the last sequence has no match
    if (end - at < 2) return false;
    const std::size_t offset = Read<std::uint16_t>(at);
    at += 2;
    std::size_t match = token & 15;
    if (!ReadLength(&at, end, &match)) return false;
    match += 4;
    if (offset == 0 || offset > done || match > out->size() - done) return false;
    // Byte by byte: a match may overlap what it writes.
    for (; match > 0; --match, ++done) (*out)[done] = (*out)[done - offset];
  }
  return done == out->size();
}

bool IsFatBinary(const void* image) {
  return image != nullptr && Read<std::uint32_t>(static_cast<const char*>(image)) == kMagic;
}

std::vector<std::vector<char>> ReadFatBinary(const void* image, int capability) {
  std::vector<std::vector<char>> images;
  if (!IsFatBinary(image)) return images;
  const char* at = static_cast<const char*>(image);
  const auto header = Read<Header>(at);
  at += header.header_bytes;
  const char* const end = at + header.bytes;
  int best = 0;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(Entry))) {
    const auto entry = Read<Entry>(at);
    const char* const payload = at + entry.header_bytes;
    at = payload + entry.payload_bytes;
    if (entry.header_bytes < sizeof(Entry) || at > end) return images;
    const int needs = static_cast<int>(entry.capability);
    if (entry.kind != kElf || (!images.empty() && IsBetter(best, needs, capability))) continue;
    if (!images.empty() && needs != best) images.clear();
    best = needs;
    std::vector<char> elf(payload, payload + entry.payload_bytes);
    if ((entry.flags & kIsCompressed) != 0) {
      elf.assign(entry.bytes, '\0');
      if (!DecompressLz4(payload, entry.compressed_bytes, &elf)) continue;
    }
    images.push_back(std::move(elf));
  }
  return images;
}

}  // namespace simgpu
