#include "allocator/offline/logs/log_columns.h"

#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/event.h"
#include "allocator/base/json.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"

namespace thimble {
namespace {

using Group = LogColumns::Group;

// Blocks without a key up to this size are one group, because no framework names them.
constexpr Bytes kSmall = 4096;

enum ColumnId : std::size_t {
  kOpTime,
  kOpWhat,
  kBlockAddress,
  kBlockBytes,
  kBlockGroup,
  kMarkKind,
  kMarkOp,
  kMarkTime,
  kMarkAddress,
  kMarkBytes,
  kMarkStream,
  kMarkKey,
};
constexpr std::array<const char*, 12> kNames = {
    "op.time", "op.what",   "block.address", "block.bytes", "block.group", "mark.kind",
    "mark.op", "mark.time", "mark.address",  "mark.bytes",  "mark.stream", "mark.key",
};

class Builder {
 public:
  explicit Builder(const LogContents& log) : log_(log) {
    out_.version = log.version;
    out_.texts = log.texts;
    for (const char* const name : kNames) out_.columns.push_back({name, 0, ""});
  }

  LogColumns Build() {
    for (const Event& event : log_.events) {
      switch (event.kind) {
        case EventKind::kAllocate:
          Free(event);  // the log may lack the free of an older block
          Allocate(event);
          break;
        case EventKind::kFree:
          Free(event);
          break;
        case EventKind::kOp:
        case EventKind::kUse:
          break;  // not drawn; most events of an arena that swaps
        default:
          Mark(event);
      }
    }
    return std::move(out_);
  }

 private:
  void Add(ColumnId column, std::uint64_t number) { out_.columns[column].Add(number); }

  void AddOp(const Event& event, std::uint64_t what) {
    Add(kOpTime, event.time_ns - std::min(event.time_ns, op_time_));
    op_time_ = std::max(event.time_ns, op_time_);
    Add(kOpWhat, what);
    ++ops_;
  }

  void Allocate(const Event& event) {
    AddOp(event, 0);
    live_[event.address] = blocks_++;
    out_.columns[kBlockAddress].AddSigned(static_cast<std::int64_t>(event.address - last_address_));
    last_address_ = event.address;
    Add(kBlockBytes, event.bytes);
    Add(kBlockGroup, GroupOf(event.key, event.bytes));
  }

  void Free(const Event& event) {
    const auto block = live_.find(event.address);
    if (block == live_.end()) return;
    AddOp(event, blocks_ - block->second);
    live_.erase(block);
  }

  std::uint64_t GroupOf(std::uint64_t key, Bytes bytes) {
    const Bytes size = key != 0 ? 0 : bytes <= kSmall ? kSmall : bytes;
    const auto [it, is_new] = group_of_.emplace(std::make_pair(key, size), out_.groups.size());
    if (!is_new) return it->second;
    Group& group = out_.groups.emplace_back();
    const auto name = log_.names.find(key);
    if (key != 0 && name != log_.names.end()) {
      group.name = name->second;
    } else {
      group.kind = key != 0         ? Group::Kind::kKey
                   : size == kSmall ? Group::Kind::kSmall
                                    : Group::Kind::kSize;
      group.value = key != 0 ? key : size;
    }
    return it->second;
  }

  // From 1; 0 for an unknown block.
  std::uint64_t BlockAt(std::uint64_t address) const {
    const auto block = live_.find(address);
    return block == live_.end() ? 0 : block->second + 1;
  }

  // Blocks, texts and groups in the order of their numbers.
  Event Numbered(Event event) {
    if (event.kind == EventKind::kEvict || event.kind == EventKind::kFetch) {
      event.address = BlockAt(event.address);
    } else if (event.kind == EventKind::kOom) {
      event.address = texts_++;
      event.key = GroupOf(event.key, event.bytes);
    } else if (event.kind == EventKind::kPlace) {
      event.key = GroupOf(event.key, event.bytes);
    }
    return event;
  }

  void Mark(const Event& event) {
    Add(kMarkKind, static_cast<std::uint64_t>(event.kind));
    Add(kMarkOp, ops_ - mark_ops_);
    mark_ops_ = ops_;
    Add(kMarkTime, event.time_ns - std::min(event.time_ns, mark_time_));
    mark_time_ = std::max(event.time_ns, mark_time_);
    const Event numbered = Numbered(event);
    Add(kMarkAddress, numbered.address);
    Add(kMarkBytes, numbered.bytes);
    Add(kMarkStream, static_cast<std::uint64_t>(numbered.stream));
    Add(kMarkKey, numbered.key);
  }

  const LogContents& log_;
  LogColumns out_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> live_;  // to the number of the block
  absl::flat_hash_map<std::pair<std::uint64_t, Bytes>, std::uint64_t> group_of_;
  std::uint64_t blocks_ = 0;
  std::uint64_t ops_ = 0;
  std::uint64_t texts_ = 0;
  std::uint64_t op_time_ = 0;
  std::uint64_t mark_ops_ = 0;
  std::uint64_t mark_time_ = 0;
  std::uint64_t last_address_ = 0;
};

// Bytes beyond ASCII stay as they are: readers of the line handle bad UTF-8.
void AppendJson(const std::string& text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out->append({'\\', c});
    } else if (static_cast<unsigned char>(c) < ' ') {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

const char* NameOf(Group::Kind kind) {
  switch (kind) {
    case Group::Kind::kName:
      return "name";
    case Group::Kind::kKey:
      return "key";
    case Group::Kind::kSize:
      return "size";
    case Group::Kind::kSmall:
      return "small";
  }
  return "";
}

}  // namespace

void LogColumns::Column::Add(std::uint64_t number) {
  ++count;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>(0x80 | (number & 0x7f)));
  bytes.push_back(static_cast<char>(number));
}

void LogColumns::Column::AddSigned(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  Add(number < 0 ? ~(bits << 1) : bits << 1);
}

LogColumns ToColumns(const LogContents& log) { return Builder(log).Build(); }

std::string ToText(const LogColumns& columns) {
  JsonObject kinds;
#define THIMBLE_EVENT(kind, name, number, address, bytes, stream, key) kinds.Add(name, number);
#include "allocator/base/events.def"
  std::string text = absl::StrCat("{\"version\":", columns.version, ",\"kinds\":", kinds.Text());
  const char* separator = ",\"columns\":[";
  for (const LogColumns::Column& column : columns.columns) {
    absl::StrAppend(&text, separator, "{\"name\":\"", column.name, "\",\"count\":", column.count,
                    ",\"bytes\":", column.bytes.size(), "}");
    separator = ",";
  }
  absl::StrAppend(&text, "],\"groups\":[");
  separator = "";
  for (const Group& group : columns.groups) {
    absl::StrAppend(&text, separator, "{\"kind\":\"", NameOf(group.kind), "\",");
    if (group.kind == Group::Kind::kName) {
      absl::StrAppend(&text, "\"name\":");
      AppendJson(group.name, &text);
    } else {
      absl::StrAppend(&text, "\"value\":\"", group.value, "\"");
    }
    text.push_back('}');
    separator = ",";
  }
  absl::StrAppend(&text, "],\"texts\":[");
  separator = "";
  for (const std::string& explanation : columns.texts) {
    absl::StrAppend(&text, separator);
    AppendJson(explanation, &text);
    separator = ",";
  }
  absl::StrAppend(&text, "]}\n");
  for (const LogColumns::Column& column : columns.columns) text += column.bytes;
  return text;
}

absl::StatusOr<LogSummary> WriteLogColumns(const std::string& log_path,
                                           const std::string& columns_path) {
  THIMBLE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(log_path));
  THIMBLE_RETURN_IF_ERROR(WriteWholeFile(ToText(ToColumns(log)), columns_path));
  return Summarize(log);
}

}  // namespace thimble
