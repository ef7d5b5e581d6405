// Any file is either refused with the reason, or read up to the first damaged record. The records
// read can be summarised and drawn, and an incomplete log says why.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/observe/log_format.h"
#include "allocator/offline/logs/log_columns.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_summary.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("event_log", MFD_CLOEXEC);
  static const std::string path = absl::StrCat("/proc/self/fd/", file);
  FUZZ_EXPECT(ftruncate(file, 0) == 0);
  FUZZ_EXPECT(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));

  const auto log = thimble::ReadLog(path);
  const auto strict = thimble::ReadEventLog(path);
  FUZZ_EXPECT(strict.ok() == (log.ok() && log->damage.empty()));
  if (!strict.ok()) {
    FUZZ_EXPECT(strict.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StrContains(strict.status().message(), path));
  }
  if (!log.ok()) return 0;
  const std::size_t header =
      log->version < 3 ? thimble::log_format::kOldHeaderBytes : sizeof(thimble::log_format::Header);
  const std::size_t records = (size - header) / sizeof(thimble::log_format::Record);
  FUZZ_EXPECT(thimble::IsEventLog(path));
  FUZZ_EXPECT(log->damage.empty() ? log->records == records : log->records < records);
  FUZZ_EXPECT(!log->complete || log->damage.empty());
  FUZZ_EXPECT(log->complete == log->note.empty());
  FUZZ_EXPECT(log->events.size() <= log->records);
  std::size_t ooms = 0;
  for (const thimble::Event& event : log->events) {
    FUZZ_EXPECT(event.kind >= thimble::EventKind::kAllocate);
    FUZZ_EXPECT(event.kind <= thimble::EventKind::kLast);
    FUZZ_EXPECT(event.kind != thimble::EventKind::kName && event.kind != thimble::EventKind::kText);
    ooms += event.kind == thimble::EventKind::kOom ? 1 : 0;
  }
  FUZZ_EXPECT(log->texts.size() == ooms);

  const thimble::LogSummary summary = thimble::Summarize(*log);
  const thimble::LogColumns columns = thimble::ToColumns(*log);
  FUZZ_EXPECT(columns.columns[2].count == summary.allocations);
  FUZZ_EXPECT(columns.columns[0].count <= 2 * summary.allocations);
  std::size_t bytes = 0;
  for (const thimble::LogColumns::Column& column : columns.columns) bytes += column.bytes.size();
  const std::string text = thimble::ToText(columns);
  FUZZ_EXPECT(text.find('\n') + 1 + bytes == text.size());
  return 0;
}
