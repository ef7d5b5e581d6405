// Writes the trace of a generator that acts like a program.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "allocator/offline/logs/trace_text.h"

namespace thimble::workloads {

class TraceWriter {
 public:
  // The id of a new block; ids are reused, latest first, to keep the trace small.
  std::uint32_t Allocate(Bytes bytes);
  void Free(std::uint32_t id);
  void Step();
  // An op that reads and writes live blocks.
  void Access(const std::string& op, std::int64_t ns, std::vector<std::uint32_t> reads,
              std::vector<std::uint32_t> writes);

  Bytes bytes_of(std::uint32_t id) const { return sizes_[id]; }
  Bytes live_bytes() const { return live_bytes_; }
  std::size_t ops() const { return ops_; }  // allocations and frees so far

  // Frees all live blocks, the lowest id first, and returns the text.
  std::string Finish() &&;

 private:
  static constexpr Bytes kNotLive = ~Bytes{0};

  std::string text_;
  std::vector<Bytes> sizes_;  // by id
  std::vector<std::uint32_t> spare_ids_;
  Bytes live_bytes_ = 0;
  std::size_t ops_ = 0;
};

}  // namespace thimble::workloads
