// ReadEventLog: any file is either refused with the reason, or gives one event per whole record.
#include "allocator/observe/event_log.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeaderBytes = 16;
  constexpr std::size_t kRecordBytes = 48;
  static const int file = memfd_create("event_log", MFD_CLOEXEC);
  static const std::string path = absl::StrCat("/proc/self/fd/", file);
  FUZZ_EXPECT(ftruncate(file, 0) == 0);
  FUZZ_EXPECT(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));

  const auto events = thimble::ReadEventLog(path);
  if (!events.ok()) {
    FUZZ_EXPECT(events.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StrContains(events.status().message(), path));
    return 0;
  }
  FUZZ_EXPECT(thimble::IsEventLog(path));
  FUZZ_EXPECT(events->size() == (size - kHeaderBytes) / kRecordBytes);
  for (const thimble::Event& event : *events) {
    FUZZ_EXPECT(event.kind >= thimble::EventKind::kAllocate);
    FUZZ_EXPECT(event.kind <= thimble::EventKind::kLast);
  }
  return 0;
}
