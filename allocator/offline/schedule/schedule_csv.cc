#include "allocator/offline/schedule/schedule_csv.h"

#include "absl/strings/str_cat.h"
#include "allocator/base/whole_file.h"

namespace thimble::schedule {
namespace {

std::string OpText(const Problem& problem, std::int32_t index) {
  const std::int32_t ops = static_cast<std::int32_t>(problem.ops.size());
  const Op& op = problem.ops[index % ops];
  std::string text = absl::StrCat(op.name, "#", op.occurrence);
  if (index >= ops) absl::StrAppend(&text, "+", index / ops);
  return text;
}

}  // namespace

std::string ScheduleText(const Problem& problem, const Schedule& schedule) {
  std::string text =
      "block,key,bytes,offset,after,before,returns,gone_from,gone_until,out_ns,in_ns\n";
  for (const Swap& swap : schedule.swaps) {
    const Block& block = problem.blocks[swap.block];
    absl::StrAppend(&text, block.id, ",", block.key, ",", block.bytes, ",", block.offset, ",",
                    OpText(problem, swap.after), ",", OpText(problem, swap.before), ",");
    absl::StrAppend(&text, swap.returns ? 1 : 0, ",", OpText(problem, swap.gone_from), ",",
                    OpText(problem, swap.gone_until), ",", swap.out_ns, ",", swap.in_ns, "\n");
  }
  return text;
}

absl::Status WriteScheduleFile(const Problem& problem, const Schedule& schedule,
                               const std::string& path) {
  return WriteWholeFile(ScheduleText(problem, schedule), path);
}

}  // namespace thimble::schedule
