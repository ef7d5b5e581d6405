#include "allocator/offline/tools/tools.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

struct Tool {
  const char* name;
  absl::StatusOr<std::string> (*run)(Arguments arguments);
};

constexpr Tool kTools[] = {
    {"log", RunLog},   {"columns", RunColumns}, {"replay", RunReplay},
    {"plan", RunPlan}, {"swap", RunSwap},       {"harmony", RunHarmony},
};

}  // namespace

absl::StatusOr<std::string> RunTool(absl::string_view name, const std::vector<std::string>& texts) {
  for (const Tool& tool : kTools) {
    if (name != tool.name) continue;
    THIMBLE_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Parse(texts));
    return tool.run(std::move(arguments));
  }
  const std::string names = absl::StrJoin(
      kTools, ", ", [](std::string* out, const Tool& tool) { absl::StrAppend(out, tool.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("there is no tool ", Quote(name), ": the tools are ", names));
}

}  // namespace thimble
