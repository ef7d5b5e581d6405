// Reads problems and writes plans, in the format of MiniMalloc's benchmarks.
//
//   id,lower,upper,size        a problem: one buffer per line, live from lower until upper
//   0,995328,1000448,656384    (excluded); ids are any text without commas, each used once
//
//   id,offset                  its plan, in the same order
//   0,392192
//
// A header may give the columns in another order. Empty lines, blanks around fields and carriage
// returns are skipped.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

struct NamedProblem {
  Problem problem;               // passes CheckProblem()
  std::vector<std::string> ids;  // by buffer
};

// The error names the first wrong line (`name`:line), quotes the text and says what to do.
absl::StatusOr<NamedProblem> ParseProblemCsv(absl::string_view text, absl::string_view name);

// The same for a file; kNotFound or kUnavailable if it cannot be read.
absl::StatusOr<NamedProblem> ReadProblemFile(const std::string& path);

std::string PlanCsv(const std::vector<std::string>& ids, const Plan& plan);

// kUnavailable if the file cannot be written.
[[nodiscard]] absl::Status WritePlanFile(const std::vector<std::string>& ids, const Plan& plan,
                                         const std::string& path);

}  // namespace thimble::plan
