#include "tests/simgpu/driver/cubin.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "tests/simgpu/driver/fat_binary.h"

namespace simgpu {
namespace {

constexpr char kInfoPrefix[] = ".nv.info.";
constexpr std::size_t kInfoPrefixLength = sizeof(kInfoPrefix) - 1;

// An entry of .nv.info.KERNEL is a format, an attribute and a 16-bit value; with kSized the value
// is the number of bytes that follow.
constexpr std::uint8_t kSized = 4;
constexpr std::uint8_t kParameterInfo = 0x17;

struct ParameterInfo {
  std::uint32_t index;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t packed;  // the size is in its upper 14 bits
};

std::vector<Bytes> ReadParameters(const char* info, std::size_t bytes) {
  std::map<int, Bytes> by_ordinal;
  for (std::size_t at = 0; at + 4 <= bytes;) {
    std::uint16_t value = 0;
    std::memcpy(&value, info + at + 2, sizeof(value));
    const auto format = static_cast<std::uint8_t>(info[at]);
    const auto attribute = static_cast<std::uint8_t>(info[at + 1]);
    at += 4;
    if (format != kSized) continue;
    if (attribute == kParameterInfo && value == sizeof(ParameterInfo) && at + value <= bytes) {
      ParameterInfo parameter;
      std::memcpy(&parameter, info + at, sizeof(parameter));
      by_ordinal[parameter.ordinal] = parameter.packed >> 18;
    }
    at += value;
  }
  std::vector<Bytes> sizes;
  for (const auto& [ordinal, size] : by_ordinal) sizes.push_back(size);
  return sizes;
}

void ReadSymbols(const char* base, const Elf64_Shdr& section, const Elf64_Shdr& names,
                 Cubin* cubin) {
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, base + section.sh_offset + at, sizeof(symbol));
    const std::string name = base + names.sh_offset + symbol.st_name;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) cubin->variables[name] = symbol.st_size;
  }
}

// Adds what is in an ELF image. False if it is none.
bool ReadElf(const void* image, Cubin* cubin) {
  const char* const base = static_cast<const char*>(image);
  if (base == nullptr || std::memcmp(base, ELFMAG, SELFMAG) != 0) return false;
  Elf64_Ehdr header;
  std::memcpy(&header, base, sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), base + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const char* const names = base + sections[header.e_shstrndx].sh_offset;
  for (const Elf64_Shdr& section : sections) {
    const std::string name = names + section.sh_name;
    if (name.compare(0, kInfoPrefixLength, kInfoPrefix) == 0) {
      cubin->kernels[name.substr(kInfoPrefixLength)] =
          ReadParameters(base + section.sh_offset, section.sh_size);
    } else if (section.sh_type == SHT_SYMTAB) {
      ReadSymbols(base, section, sections[section.sh_link], cubin);
    }
  }
  return true;
}

}  // namespace

Cubin ReadCubin(const void* image, int capability) {
  Cubin cubin;
  if (!IsFatBinary(image)) {
    cubin.is_read = ReadElf(image, &cubin);
    return cubin;
  }
  for (const std::vector<char>& elf : ReadFatBinary(image, capability)) {
    ReadElf(elf.data(), &cubin);
  }
  return cubin;
}

}  // namespace simgpu
