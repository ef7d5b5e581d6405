// The tools by name. thimble_offline.h lists the arguments of each.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/offline/tools/arguments.h"

namespace thimble {

// Runs a tool and returns its answer as JSON.
absl::StatusOr<std::string> RunTool(absl::string_view name, const std::vector<std::string>& texts);

absl::StatusOr<std::string> RunLog(Arguments arguments);
absl::StatusOr<std::string> RunColumns(Arguments arguments);
absl::StatusOr<std::string> RunReplay(Arguments arguments);
absl::StatusOr<std::string> RunPlan(Arguments arguments);
absl::StatusOr<std::string> RunSwap(Arguments arguments);
absl::StatusOr<std::string> RunHarmony(Arguments arguments);

}  // namespace thimble
