// Bytes by number: the attributes of cuBLASLt's descriptors, which callers set and get.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

namespace simgpu {

class Attributes {
 public:
  void Set(int number, const void* value, std::size_t bytes) {
    const char* const begin = static_cast<const char*>(value);
    values_[number].assign(begin, begin + bytes);
  }

  // Fills `bytes` at `value` with what was set, or with zeros. Returns how many were set.
  std::size_t Get(int number, void* value, std::size_t bytes) const {
    if (value) std::memset(value, 0, bytes);
    const auto found = values_.find(number);
    if (found == values_.end()) return bytes;
    if (value) std::memcpy(value, found->second.data(), std::min(bytes, found->second.size()));
    return found->second.size();
  }

 private:
  std::map<int, std::vector<char>> values_;
};

}  // namespace simgpu
