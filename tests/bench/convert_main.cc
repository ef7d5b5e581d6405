// convert IN OUT: turns an event log into a text trace, or a text trace into an event log. The
// first bytes of IN tell which it is.
#include <cstdio>
#include <string>

#include "allocator/base/status_macros.h"
#include "allocator/observe/event_log.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_trace.h"
#include "allocator/offline/logs/trace_text.h"

namespace thimble {
namespace {

absl::Status WriteLog(const Trace& trace, const std::string& path) {
  EventLog log;
  THIMBLE_RETURN_IF_ERROR(log.Start(path));
  for (const Event& event : EventsFromTrace(trace)) log.Append(event);
  return log.Stop();
}

absl::Status Convert(const std::string& in, const std::string& out) {
  const bool is_log = IsEventLog(in);
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, ReadTraceOrLog(in));
  return is_log ? WriteTraceFile(trace, out) : WriteLog(trace, out);
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: convert IN OUT   (event log to text trace, or text trace to event log)\n",
               stderr);
    return 2;
  }
  const absl::Status status = thimble::Convert(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "convert: %s\n", std::string(status.message()).c_str());
  return 2;
}
