#include "tests/simgpu/driver/results.h"

#include <cstring>

namespace simgpu {
namespace {

// Above this number, forgetting writes is cheaper than tracking them.
constexpr std::size_t kMostWrites = std::size_t{1} << 20;

}  // namespace

void Results::Wrote(const char* begin, Bytes bytes) {
  if (bytes > limit_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (written_.size() >= kMostWrites) written_.clear();
  written_[begin] = bytes;
}

bool Results::WasWritten(const char* begin, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = written_.find(begin);
  return found != written_.end() && found->second == bytes;
}

bool Results::MakeUp(const char* from, Bytes bytes, char* to) {
  if (bytes > limit_ || !launched_.load(std::memory_order_relaxed)) return false;
  if (WasWritten(from, bytes)) return false;
  std::memset(to, bytes == 1 ? truth_ : 0, bytes);
  return true;
}

}  // namespace simgpu
