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

// A name or an explanation is shorter; what claims to be longer is not believed.
constexpr std::uint64_t kLongestText = 1 << 16;

bool ReadHeader(std::ifstream* file, Header* header) {
  return file->read(reinterpret_cast<char*>(header), log_format::kOldHeaderBytes) &&
         header->magic == log_format::kMagic;
}

// Of an old version, or with what is newer in it.
bool ReadRestOfHeader(std::ifstream* file, Header* header) {
  return header->version < 3 || file->read(reinterpret_cast<char*>(&header->records),
                                           sizeof(*header) - log_format::kOldHeaderBytes);
}

// What finds damage in logs without checks: more in use than there is memory. What is on the host
// is in use, too, so that nothing can be said once a block has left the device.
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
  Bytes reserved_ = std::numeric_limits<Bytes>::max();  // until the log tells
  bool has_swapped_ = false;
};

// One log, record by record.
class Reader {
 public:
  explicit Reader(const Header& header) : header_(header) { contents_.version = header.version; }

  // Whether the record is the next one of the log.
  bool IsNext(const Record& record) const {
    return record.check ==
           (header_.version < 3 ? 0 : log_format::CheckOf(record, contents_.records, header_.id));
  }
  std::uint64_t records() const { return contents_.records; }

  // False if the record makes no sense; then `damage` says so.
  bool Add(const Record& record) {
    if (!IsNext(record)) return Refuse("is not what was written");
    if (record.kind < static_cast<std::uint64_t>(EventKind::kAllocate) ||
        record.kind > static_cast<std::uint64_t>(log_format::LastKindOf(contents_.version))) {
      return Refuse(absl::StrCat("has kind ", record.kind));
    }
    const auto kind = static_cast<EventKind>(record.kind);
    if (kind == EventKind::kText) {
      if (missing_ == 0) return Refuse("is a text that belongs to nothing");
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
                          " events before it are sound, and all that is told");
    }
    const bool is_counted = header_.version >= 3 && header_.end != log_format::End::kFailed;
    if (is_counted && records < header_.records) {
      return absl::StrCat("the log is incomplete: ", records, " of ", header_.records,
                          " events, the rest of the file is missing");
    }
    switch (header_.end) {
      case log_format::End::kComplete:
        return "";
      case log_format::End::kBound:
        return absl::StrCat("the log is incomplete: the first ", records,
                            " events, as many as were to be recorded");
      case log_format::End::kFailed:
        return absl::StrCat("the log is incomplete: it could not be written after ", records,
                            " events, as on a full disk");
      default:
        return absl::StrCat(
            "the log is incomplete: its process still runs, or did not exit by itself; these are "
            "its ",
            records, " events until then",
            has_tail ? ""
                     : absl::StrCat(", and the last ", log_format::kTailEvents,
                                    " or fewer are missing"));
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
  std::string* text_ = nullptr;  // of the last event that has one
  std::uint64_t missing_ = 0;    // bytes of it that are still to come
};

}  // namespace

absl::StatusOr<LogContents> ReadLog(const std::string& path) {
  const std::vector<Record> tail = ReadTail(path);  // before the log, which may take it over
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
                     ", this program reads versions 1 to ", log_format::kVersion,
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
