// The tools that read event logs.
#include <algorithm>

#include "allocator/arena/options.h"
#include "allocator/base/json.h"
#include "allocator/base/status_macros.h"
#include "allocator/driver/host_driver.h"
#include "allocator/offline/logs/log_columns.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/log_summary.h"
#include "allocator/offline/logs/replay.h"
#include "allocator/offline/tools/tools.h"

namespace thimble {

absl::StatusOr<std::string> RunLog(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string log, arguments.Need("log"));
  const std::string trace = arguments.Take("trace");
  THIMBLE_RETURN_IF_ERROR(arguments.CheckAllTaken());
  THIMBLE_ASSIGN_OR_RETURN(const LogSummary summary, ConvertLog(log, trace));
  return ToJson(summary);
}

absl::StatusOr<std::string> RunColumns(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string log, arguments.Need("log"));
  THIMBLE_ASSIGN_OR_RETURN(const std::string columns, arguments.Need("columns"));
  THIMBLE_RETURN_IF_ERROR(arguments.CheckAllTaken());
  THIMBLE_ASSIGN_OR_RETURN(const LogSummary summary, WriteLogColumns(log, columns));
  return ToJson(summary);
}

absl::StatusOr<std::string> RunReplay(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string log, arguments.Need("log"));
  const std::string text = arguments.Take("options");
  THIMBLE_RETURN_IF_ERROR(arguments.CheckAllTaken());
  THIMBLE_ASSIGN_OR_RETURN(const Options options, ParseOptions(text));
  if (options.arena.limit == 0) {
    return absl::InvalidArgumentError("a replay needs a limit: add limit:8GiB to the options");
  }
  THIMBLE_ASSIGN_OR_RETURN(const auto events, ReadEventLog(log));
  HostOptions host;
  host.total_bytes = RoundUp(options.arena.limit, host.granularity);
  host.granularity = std::min(host.granularity, options.arena.chunk_bytes);
  THIMBLE_ASSIGN_OR_RETURN(const auto driver, HostDriver::Open(host));
  THIMBLE_ASSIGN_OR_RETURN(const ReplayOutcome outcome,
                           ReplayLog(events, options.arena, driver.get()));
  return JsonObject()
      .Add("reached", outcome.reached)
      .Add("fits", outcome.fits)
      .Add("failed_bytes", outcome.failed_bytes)
      .Add("requests", outcome.requests)
      .Add("peak_in_use", outcome.peak_in_use)
      .Add("peak_reserved", outcome.peak_reserved)
      .Text();
}

}  // namespace thimble
