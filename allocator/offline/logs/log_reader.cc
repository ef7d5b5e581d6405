#include "allocator/offline/logs/log_reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/log_format.h"
#include "allocator/observe/log_tail.h"

namespace thimble {
namespace {

using log_format::Header;
using log_format::kTextBytes;
using log_format::Record;

// Names and reports are shorter; a record that claims more is damaged.
constexpr std::uint64_t kLongestText = 1 << 16;

bool ReadHeader(std::ifstream* file, Header* header) {
  return file->read(reinterpret_cast<char*>(header), log_format::kOldHeaderBytes) &&
         header->magic == log_format::kMagic;
}

// The header of an old version lacks the newer fields.
bool ReadRestOfHeader(std::ifstream* file, Header* header) {
  return header->version < 3 || file->read(reinterpret_cast<char*>(&header->records),
                                           sizeof(*header) - log_format::kOldHeaderBytes);
}

// Finds damage in logs without checks: more bytes in use than reserved. Swapped blocks count as in
// use, so the test stops once a block has left the device.
class Balance {
 public:
  bool Holds(const Record& record) {
    switch (static_cast<EventKind>(record.kind)) {
      case EventKind::kAllocate:
        in_use_ += record.bytes - std::exchange(live_[record.address], record.bytes);
        break;
      case EventKind::kFree:
        if (const auto block = live_.find(record.address); block != live_.end()) {
          in_use_ -= block->second;
          live_.erase(block);
        }
        break;
      case EventKind::kMemory:
        reserved_ = record.bytes;
        break;
      case EventKind::kSwap:
      case EventKind::kEvict:
        has_swapped_ = true;
        break;
      default:
        break;
    }
    return has_swapped_ || in_use_ <= reserved_;
  }

 private:
  absl::flat_hash_map<std::uint64_t, Bytes> live_;  // by address
  Bytes in_use_ = 0;
  Bytes reserved_ = std::numeric_limits<Bytes>::max();  // until the first kMemory
  bool has_swapped_ = false;
};

// One log, record by record.
class Reader {
 public:
  explicit Reader(const Header& header) : header_(header) { contents_.version = header.version; }

  // Whether the record is the next one in the log.
  bool IsNext(const Record& record) const {
    return record.check ==
           (header_.version < 3 ? 0 : log_format::CheckOf(record, contents_.records, header_.id));
  }
  std::uint64_t records() const { return contents_.records; }

  // False if the record is damaged; `damage` then says how.
  bool Add(const Record& record) {
    if (!IsNext(record)) return Refuse("has a wrong checksum");
    if (record.kind < static_cast<std::uint64_t>(EventKind::kAllocate) ||
        record.kind > static_cast<std::uint64_t>(log_format::LastKindOf(contents_.version))) {
      return Refuse(absl::StrCat("has kind ", record.kind));
    }
    const auto kind = static_cast<EventKind>(record.kind);
    if (kind == EventKind::kText) {
      if (missing_ == 0) return Refuse("is a text without an event");
      const std::uint64_t part = std::min<std::uint64_t>(missing_, kTextBytes);
      text_->append(reinterpret_cast<const char*>(&record.address), part);
      missing_ -= part;
    } else {
      if (log_format::HasText(kind) && record.stream > kLongestText) {
        return Refuse(absl::StrCat("has a text of ", record.stream, " bytes"));
      }
      if (header_.version < 3 && !balance_.Holds(record)) {
        return Refuse("has more in use than is reserved");
      }
      AddEvent(kind, record);
    }
    ++contents_.records;
    return true;
  }

  LogContents Finish(bool has_tail) {
    contents_.note = NoteOf(has_tail);
    contents_.complete = contents_.note.empty();
    return std::move(contents_);
  }

 private:
  bool Refuse(absl::string_view what) {
    contents_.damage = absl::StrCat("record ", contents_.records, " ", what);
    return false;
  }

  std::string NoteOf(bool has_tail) const {
    const std::uint64_t records = contents_.records;
    if (!contents_.damage.empty()) {
      return absl::StrCat("the log is damaged: ", contents_.damage, "; the ", records,
                          " events before it are intact, the rest is ignored");
    }
    const bool is_counted = header_.version >= 3 && header_.end != log_format::End::kFailed;
    if (is_counted && records < header_.records) {
      return absl::StrCat("the log is incomplete: ", records, " of ", header_.records,
                          " events are left, the rest of the file is missing");
    }
    switch (header_.end) {
      case log_format::End::kComplete:
        return "";
      case log_format::End::kBound:
        return absl::StrCat("the log is incomplete: the first ", records,
                            " events, the bound that log_events sets");
      case log_format::End::kFailed:
        return absl::StrCat("the log is incomplete: it could not be written after ", records,
                            " events, as on a full disk");
      default:
        return absl::StrCat(
            "the log is incomplete: its process still runs, crashed or was killed; it has ",
            records, " events so far",
            has_tail
                ? ""
                : absl::StrCat(", and up to ", log_format::kTailEvents, " newer ones are missing"));
    }
  }

  void AddEvent(EventKind kind, const Record& record) {
    missing_ = log_format::HasText(kind) ? record.stream : 0;
    if (kind == EventKind::kName) {
      text_ = &contents_.names[record.key];
      text_->clear();
      return;
    }
    contents_.events.push_back(
        {kind, record.address, record.bytes, StreamId{record.stream}, record.key, record.time_ns});
    if (kind == EventKind::kOom) text_ = &contents_.texts.emplace_back();
  }

  const Header header_;
  Balance balance_;
  LogContents contents_;
  std::string* text_ = nullptr;  // of the newest event with a text
  std::uint64_t missing_ = 0;    // bytes of it not read yet
};

}  // namespace

absl::StatusOr<LogContents> ReadLog(const std::string& path) {
  const std::vector<Record> tail = ReadTail(path);  // before the log, to which its records may move
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("'", path, "' cannot be opened"));
  Header header{};
  if (!ReadHeader(&file, &header)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an event log of Thimble"));
  }
  if (header.version < 1 || header.version > log_format::kVersion ||
      header.record_bytes != sizeof(Record)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is an event log of version ", header.version,
                     ", but this program reads versions 1 to ", log_format::kVersion,
                     ": use the Thimble that wrote it"));
  }
  if (!ReadRestOfHeader(&file, &header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is cut off within the header of an event log"));
  }
  Reader reader(header);
  std::vector<Record> records(4096);
  bool sane = true;
  while (sane && file) {
    file.read(reinterpret_cast<char*>(records.data()),
              static_cast<std::streamsize>(records.size() * sizeof(Record)));
    const std::size_t whole = static_cast<std::size_t>(file.gcount()) / sizeof(Record);
    for (std::size_t i = 0; sane && i < whole; ++i) sane = reader.Add(records[i]);
  }
  if (header.version >= 3 && !tail.empty()) {
    const auto next = [&] { return tail[reader.records() % tail.size()]; };
    while (sane && reader.IsNext(next())) sane = reader.Add(next());
  }
  return reader.Finish(!tail.empty());
}

absl::Status CheckUndamaged(const LogContents& log, const std::string& path) {
  if (log.damage.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", log.note));
}

absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(path));
  THIMBLE_RETURN_IF_ERROR(CheckUndamaged(contents, path));
  return std::move(contents.events);
}

bool IsEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  decltype(Header::magic) magic{};
  return file.read(magic.data(), magic.size()) && magic == log_format::kMagic;
}

}  // namespace thimble
