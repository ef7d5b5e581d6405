#include "allocator/offline/plan/csv.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"

namespace thimble::plan {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kColumns };
constexpr std::array<absl::string_view, kColumns> kNames = {"id", "lower", "upper", "size"};
constexpr absl::string_view kForm = "write 'id,lower,upper,size'";

class Parser {
 public:
  explicit Parser(absl::string_view name) : name_(name) {}

  absl::Status ParseLine(absl::string_view line);
  NamedProblem TakeProblem() && { return std::move(result_); }

 private:
  using Fields = std::vector<absl::string_view>;

  static bool IsHeader(const Fields& fields);
  absl::Status ParseHeader(const Fields& fields);
  absl::Status ParseBuffer(const Fields& fields);
  absl::StatusOr<std::int64_t> Number(absl::string_view field, Column column) const;
  absl::Status Error(absl::string_view text, absl::string_view wrong_and_remedy) const;

  const absl::string_view name_;
  std::uint64_t line_ = 0;
  bool is_first_ = true;  // line that is not empty
  std::array<std::size_t, kColumns> places_ = {kId, kLower, kUpper, kSize};  // by column
  std::int64_t total_ = 0;
  absl::flat_hash_map<std::string, std::uint64_t> lines_;  // by id
  NamedProblem result_;
};

absl::Status Parser::Error(absl::string_view text, absl::string_view wrong_and_remedy) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ":", line_, ": ", Quote(text), " ", wrong_and_remedy));
}

absl::StatusOr<std::int64_t> Parser::Number(absl::string_view field, Column column) const {
  std::int64_t number = 0;
  if (absl::SimpleAtoi(field, &number)) return number;
  return Error(
      field, absl::StrCat("is not a valid ", kNames[column], ": write a whole number of 64 bits"));
}

// A first line that names a column is a header; else it is a buffer.
bool Parser::IsHeader(const Fields& fields) {
  return std::any_of(fields.begin(), fields.end(), [](absl::string_view field) {
    return field == "lower" || field == "upper" || field == "size";
  });
}

absl::Status Parser::ParseHeader(const Fields& fields) {
  for (std::size_t column = 0; column < kColumns; ++column) {
    const auto found = std::find(fields.begin(), fields.end(), kNames[column]);
    if (found == fields.end()) {
      return Error(kNames[column], absl::StrCat("is missing in the header: ", kForm));
    }
    places_[column] = static_cast<std::size_t>(found - fields.begin());
  }
  for (const absl::string_view field : fields) {
    if (std::find(kNames.begin(), kNames.end(), field) == kNames.end()) {
      return Error(field, absl::StrCat("is not a column: ", kForm));
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseBuffer(const Fields& fields) {
  const absl::string_view id = fields[places_[kId]];
  const absl::string_view upper_text = fields[places_[kUpper]];
  const absl::string_view size_text = fields[places_[kSize]];
  Buffer buffer;
  THIMBLE_ASSIGN_OR_RETURN(buffer.lower, Number(fields[places_[kLower]], kLower));
  THIMBLE_ASSIGN_OR_RETURN(buffer.upper, Number(upper_text, kUpper));
  THIMBLE_ASSIGN_OR_RETURN(buffer.size, Number(size_text, kSize));
  if (id.empty()) return Error(id, "is not an id: give every buffer one");
  if (buffer.lower >= buffer.upper) {
    return Error(upper_text, absl::StrCat("is not after lower, ", buffer.lower,
                                          ": upper is excluded, so write at least one more"));
  }
  if (buffer.size < 1 || buffer.size > kMaxSize) {
    return Error(size_text, "is not a valid size: write a number from 1 to 2^46");
  }
  total_ += buffer.size;
  if (total_ > kMaxTotalSize) {
    return Error(size_text, "brings the sum of all sizes over 2^60: use a larger unit than bytes");
  }
  if (result_.ids.size() == kMaxBuffers) {
    return Error(id, absl::StrCat("is one buffer too many: plan at most ", kMaxBuffers));
  }
  const auto [other, is_new] = lines_.try_emplace(id, line_);
  if (!is_new) {
    return Error(id, absl::StrCat("is also the id of line ", other->second, ": use another one"));
  }
  result_.problem.buffers.push_back(buffer);
  result_.ids.emplace_back(id);
  return absl::OkStatus();
}

absl::Status Parser::ParseLine(absl::string_view line) {
  ++line_;
  if (absl::StripAsciiWhitespace(line).empty()) return absl::OkStatus();
  Fields fields = absl::StrSplit(line, ',');
  for (absl::string_view& field : fields) field = absl::StripAsciiWhitespace(field);
  if (fields.size() != kColumns) {
    return Error(line, absl::StrCat("has ", fields.size(), " fields, not 4: ", kForm));
  }
  const bool is_header = is_first_ && IsHeader(fields);
  is_first_ = false;
  return is_header ? ParseHeader(fields) : ParseBuffer(fields);
}

}  // namespace

absl::StatusOr<NamedProblem> ParseProblemCsv(absl::string_view text, absl::string_view name) {
  Parser parser(name);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    THIMBLE_RETURN_IF_ERROR(parser.ParseLine(line));
  }
  return std::move(parser).TakeProblem();
}

absl::StatusOr<NamedProblem> ReadProblemFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  THIMBLE_ASSIGN_OR_RETURN(NamedProblem problem, ParseProblemCsv(text, path));
  if (problem.ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(path), " has no buffers; write one per line: id,lower,upper,size"));
  }
  return problem;
}

std::string PlanCsv(const std::vector<std::string>& ids, const Plan& plan) {
  std::string text = "id,offset\n";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    absl::StrAppend(&text, ids[i], ",", plan.offsets[i], "\n");
  }
  return text;
}

absl::Status WritePlanFile(const std::vector<std::string>& ids, const Plan& plan,
                           const std::string& path) {
  return WriteWholeFile(PlanCsv(ids, plan), path);
}

}  // namespace thimble::plan
