#include "allocator/observe/log_reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/log_format.h"

namespace thimble {
namespace {

using log_format::Header;
using log_format::kTextBytes;
using log_format::Record;

// A name or an explanation is shorter; what claims to be longer is not believed.
constexpr std::uint64_t kLongestText = 1 << 16;

bool ReadHeader(std::ifstream* file, Header* header) {
  return file->read(reinterpret_cast<char*>(header), sizeof(*header)) &&
         header->magic == log_format::kMagic;
}

// One log, record by record.
class Reader {
 public:
  explicit Reader(std::uint32_t version) { contents_.version = version; }

  // False if the record makes no sense; then `damage` says so.
  bool Add(const Record& record) {
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
      AddEvent(kind, record);
    }
    ++contents_.records;
    return true;
  }

  LogContents Finish(bool complete) {
    contents_.complete = complete;
    return std::move(contents_);
  }

 private:
  bool Refuse(absl::string_view what) {
    contents_.damage = absl::StrCat("record ", contents_.records, " ", what);
    return false;
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

  LogContents contents_;
  std::string* text_ = nullptr;  // of the last event that has one
  std::uint64_t missing_ = 0;    // bytes of it that are still to come
};

}  // namespace

absl::StatusOr<LogContents> ReadLog(const std::string& path) {
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
  Reader reader(header.version);
  std::vector<Record> records(4096);
  bool sane = true;
  while (sane && file) {
    file.read(reinterpret_cast<char*>(records.data()),
              static_cast<std::streamsize>(records.size() * sizeof(Record)));
    const std::size_t whole = static_cast<std::size_t>(file.gcount()) / sizeof(Record);
    for (std::size_t i = 0; sane && i < whole; ++i) sane = reader.Add(records[i]);
  }
  return reader.Finish(sane && header.complete == 1);
}

absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(path));
  if (!contents.damage.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is damaged: ", contents.damage));
  }
  return std::move(contents.events);
}

bool IsEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  decltype(Header::magic) magic{};
  return file.read(magic.data(), magic.size()) && magic == log_format::kMagic;
}

bool IsCompleteEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Header header{};
  return ReadHeader(&file, &header) && header.complete == 1;
}

}  // namespace thimble
