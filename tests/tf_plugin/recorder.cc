// Replaces the core's functions by which devices announce what ops use: it records every call and
// moves nothing. It is linked with the hooks into a separate library, so that real TensorFlow ops
// call it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "allocator/thimble.h"

namespace {

struct Record {
  std::mutex mutex;
  std::string lines;
  std::uint64_t refused = 0;  // an op that cannot be pinned
};

Record& TheRecord() {
  static Record* const record = new Record;
  return *record;
}

// " address:bytes" for each.
std::string Text(thimble_arena* arena, const void* const* blocks, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    thimble_block_info info = {};
    info.struct_size = sizeof(info);
    thimble_query(arena, blocks[i], &info);
    text += " " + std::to_string(reinterpret_cast<std::uintptr_t>(blocks[i])) + ":" +
            std::to_string(info.bytes);
  }
  return text;
}

void Write(const std::string& line) {
  Record& record = TheRecord();
  const std::lock_guard<std::mutex> lock(record.mutex);
  record.lines += line + "\n";
}

}  // namespace

extern "C" {

thimble_status thimble_pin(thimble_arena* arena, const void* const* blocks, size_t count,
                           uint64_t op, uint64_t, unsigned flags) {
  {
    Record& record = TheRecord();
    const std::lock_guard<std::mutex> lock(record.mutex);
    if (op == record.refused) return THIMBLE_OUT_OF_MEMORY;
  }
  Write("pin " + std::to_string(op) + " " + std::to_string(flags) + Text(arena, blocks, count));
  return THIMBLE_OK;
}

thimble_status thimble_unpin(thimble_arena* arena, const void* const* blocks, size_t count,
                             const void* const* touched, size_t touched_count, uint64_t,
                             unsigned flags) {
  Write("unpin 0 " + std::to_string(flags) + Text(arena, blocks, count) + " /" +
        Text(arena, touched, touched_count));
  return THIMBLE_OK;
}

thimble_status thimble_expose(thimble_arena* arena, const void* const* blocks, size_t count) {
  Write("expose 0 0" + Text(arena, blocks, count));
  return THIMBLE_OK;
}

// Copies the record to `buffer` and clears it; with null, returns its length.
__attribute__((visibility("default"))) size_t recorder_take(char* buffer) {
  Record& record = TheRecord();
  const std::lock_guard<std::mutex> lock(record.mutex);
  const std::size_t bytes = record.lines.size();
  if (buffer == nullptr) return bytes;
  std::copy(record.lines.begin(), record.lines.end(), buffer);
  record.lines.clear();
  return bytes;
}

__attribute__((visibility("default"))) void recorder_refuse(uint64_t op) {
  Record& record = TheRecord();
  const std::lock_guard<std::mutex> lock(record.mutex);
  record.refused = op;
}

}  // extern "C"
