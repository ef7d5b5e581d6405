// An event log as columns of numbers, from which the page of `thimble report` draws.
//
// Blocks are numbered in the order of their allocation, and so are groups. A group is a caller: an
// op by its name, or by its key if it has no name. Blocks without a key are grouped by size, by
// which people recognise an array.
//
//   op.time     ns since the one before, for every allocation and free
//   op.what     0: the next block is allocated; k: the k-th last block is freed
//   block.*     address (difference to the one before), bytes, group
//   mark.*      everything else: kind (EventKind), op (how many more ops came before it), time (ns
//               since the mark before), and address, bytes, stream and key of the event. For kEvict
//               and kFetch the address is the number of the block, from 1 (0: not known); for kOom
//               it is the number of its text; for kOom and kPlace the key is that of the group
//
// The file has one line of JSON (kinds of marks with their numbers, columns with their sizes,
// groups, texts), then the columns. A number takes as few bytes as it needs, seven bits in each,
// the lowest first. Differences that may be negative are folded (0, -1, 1, -2, ...).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_summary.h"

namespace thimble {

struct LogColumns {
  struct Column {
    std::string name;
    std::uint64_t count = 0;
    std::string bytes;

    void Add(std::uint64_t number);
    void AddSigned(std::int64_t number);
  };
  struct Group {
    enum class Kind : std::uint8_t { kName, kKey, kSize, kSmall };
    Kind kind = Kind::kName;
    std::string name;         // for kName
    std::uint64_t value = 0;  // the key, or bytes of each block
  };

  std::vector<Column> columns;
  std::vector<Group> groups;
  std::vector<std::string> texts;  // of refused requests
  std::uint32_t version = 0;
};

LogColumns ToColumns(const LogContents& log);

// The content of the file.
std::string ToText(const LogColumns& columns);

// Reads a log, writes its columns to `columns_path`, and returns its summary.
absl::StatusOr<LogSummary> WriteLogColumns(const std::string& log_path,
                                           const std::string& columns_path);

}  // namespace thimble
