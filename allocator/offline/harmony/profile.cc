#include "allocator/offline/harmony/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"

namespace thimble::harmony {
namespace {

enum Column : std::size_t {
  kSize,
  kLayer,
  kWeights,
  kForward,
  kBackward,
  kUpdate,
  kForwardMemory,
  kBackwardMemory,
  kInput,
  kBuffers,  // optional
  kColumns
};
constexpr std::array<absl::string_view, kColumns> kNames = {
    "ubatch",    "layer",         "weight_bytes",  "fwd_gpu_s", "bwd_gpu_s",
    "upd_cpu_s", "fwd_mem_bytes", "bwd_mem_bytes", "x_elems",   "buffer_bytes"};
constexpr std::size_t kNeeded = kBuffers;
constexpr double kMostBytes = 1e15;
constexpr double kMostSeconds = 1e6;
constexpr double kBytesPerElement = 4;

using Row = std::array<double, kColumns>;

std::string Header() { return absl::StrJoin(kNames.begin(), kNames.begin() + kNeeded, ","); }

class Parser {
 public:
  explicit Parser(absl::string_view name) : name_(name) {}

  absl::Status ParseLine(absl::string_view line);
  absl::StatusOr<Profile> Finish() const;

 private:
  struct Numbered {
    Row row;
    int line = 0;
    bool has_backward = true;
  };

  absl::Status Error(absl::string_view text, absl::string_view wrong_and_remedy) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", line_, ": ", Quote(text), " ", wrong_and_remedy));
  }
  absl::Status ErrorOfFile(absl::string_view wrong_and_remedy) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", wrong_and_remedy));
  }
  absl::StatusOr<double> Value(absl::string_view field, Column column) const;
  absl::Status CheckAgainstOthers(const Row& row, absl::string_view line) const;

  const absl::string_view name_;
  int line_ = 0;
  std::size_t columns_ = 0;                       // of the header; 0 before it
  std::map<std::pair<int, int>, Numbered> rows_;  // by size and layer
  std::map<int, Numbered> layers_;                // the first row of each layer
};

absl::StatusOr<double> Parser::Value(absl::string_view field, Column column) const {
  const bool is_whole = column == kSize || column == kLayer;
  const bool is_time = column == kForward || column == kBackward || column == kUpdate;
  const double least = column == kSize ? 1 : 0;
  double most = is_time ? kMostSeconds : kMostBytes;
  if (column == kSize) most = kMaxBatch;
  if (column == kLayer) most = kMaxLayers - 1;
  double value = 0;
  if (absl::SimpleAtod(field, &value) && value >= least && value <= most &&
      (!is_whole || value == std::floor(value))) {
    return value;
  }
  return Error(field,
               absl::StrCat("is not a valid ", kNames[column], ": write a ",
                            is_whole ? "whole number" : "number", " from ", least, " to ", most));
}

// Weights, updates and inputs per sample do not depend on the microbatch size.
absl::Status Parser::CheckAgainstOthers(const Row& row, absl::string_view line) const {
  const auto same = layers_.find(static_cast<int>(row[kLayer]));
  if (same == layers_.end()) return absl::OkStatus();
  const Row& other = same->second.row;
  const auto differs = [](double a, double b) { return std::abs(a - b) > 1e-6 * std::max(a, b); };
  for (const Column column : {kWeights, kUpdate, kBuffers}) {
    if (differs(row[column], other[column])) {
      return Error(line, absl::StrCat("has a different ", kNames[column], " than line ",
                                      same->second.line, ", ", other[column],
                                      ": write the same value for every microbatch size"));
    }
  }
  if (differs(row[kInput] * other[kSize], other[kInput] * row[kSize])) {
    return Error(line,
                 absl::StrCat("has different x_elems per sample than line ", same->second.line,
                              ": write ", other[kInput] / other[kSize] * row[kSize]));
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseLine(absl::string_view line) {
  ++line_;
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return absl::OkStatus();
  std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  for (absl::string_view& field : fields) field = absl::StripAsciiWhitespace(field);
  if (columns_ == 0) {
    const std::size_t count = fields.size();
    if (count < kNeeded || count > kColumns ||
        !std::equal(fields.begin(), fields.end(), kNames.begin())) {
      return Error(line, absl::StrCat("is not the header: write ", Header()));
    }
    columns_ = count;
    return absl::OkStatus();
  }
  if (fields.size() != columns_) {
    return Error(line, absl::StrCat("has ", fields.size(), " fields, not ", columns_,
                                    ": write one value for each column of the header"));
  }
  const bool has_backward = !fields[kBackward].empty() || !fields[kBackwardMemory].empty();
  Row row = {};
  for (std::size_t column = 0; column < columns_; ++column) {
    if (!has_backward && (column == kBackward || column == kBackwardMemory)) continue;
    THIMBLE_ASSIGN_OR_RETURN(row[column], Value(fields[column], static_cast<Column>(column)));
  }
  if (has_backward && row[kBackward] < row[kForward]) {
    return Error(fields[kBackward], absl::StrCat("is less than fwd_gpu_s, ", row[kForward],
                                                 ": bwd_gpu_s includes running the forward again"));
  }
  THIMBLE_RETURN_IF_ERROR(CheckAgainstOthers(row, line));
  const std::pair<int, int> key(static_cast<int>(row[kSize]), static_cast<int>(row[kLayer]));
  const auto [other, is_new] = rows_.try_emplace(key, Numbered{row, line_, has_backward});
  if (!is_new) {
    return Error(line, absl::StrCat("repeats size ", key.first, " and layer ", key.second,
                                    " of line ", other->second.line, ": write each once"));
  }
  layers_.try_emplace(key.second, Numbered{row, line_});
  return absl::OkStatus();
}

absl::StatusOr<Profile> Parser::Finish() const {
  if (rows_.empty()) {
    return ErrorOfFile(absl::StrCat("has no layers: write the header ", Header(),
                                    " and a line for every size and layer"));
  }
  const int layers = layers_.rbegin()->first + 1;
  Profile profile;
  for (const auto& [key, numbered] : rows_) {
    const auto [size, layer] = key;
    if (profile.samples.empty() || profile.samples.back().size != size) {
      Sample sample;
      sample.size = size;
      profile.samples.push_back(std::move(sample));
    }
    Sample& sample = profile.samples.back();
    const int expected = static_cast<int>(sample.forward_seconds.size());
    if (layer != expected) {
      return ErrorOfFile(absl::StrCat("microbatch size ", size, " has no line for layer ", expected,
                                      ": every size needs layers 0 to ", layers - 1));
    }
    sample.forward_seconds.push_back(numbered.row[kForward]);
    sample.forward_bytes.push_back(numbered.row[kForwardMemory]);
    if (!numbered.has_backward) continue;
    sample.backward_seconds.push_back(numbered.row[kBackward]);
    sample.backward_bytes.push_back(numbered.row[kBackwardMemory]);
  }
  bool has_backward = false;
  for (const Sample& sample : profile.samples) {
    const int got = static_cast<int>(sample.forward_seconds.size());
    if (got != layers) {
      return ErrorOfFile(absl::StrCat("microbatch size ", sample.size, " has no line for layer ",
                                      got, ": every size needs layers 0 to ", layers - 1));
    }
    const int backward = static_cast<int>(sample.backward_seconds.size());
    if (backward != 0 && backward != layers) {
      return ErrorOfFile(absl::StrCat("microbatch size ", sample.size, " has a backward for ",
                                      backward, " layers of ", layers,
                                      ": write bwd_gpu_s and bwd_mem_bytes for all or for none"));
    }
    has_backward |= backward > 0;
  }
  if (!has_backward) {
    return ErrorOfFile("has no backward: write bwd_gpu_s and bwd_mem_bytes for at least one size");
  }
  for (const auto& [layer, numbered] : layers_) {
    const Row& row = numbered.row;
    profile.layers.push_back(
        {row[kWeights], row[kUpdate], row[kInput] * kBytesPerElement / row[kSize], row[kBuffers]});
  }
  return profile;
}

}  // namespace

absl::StatusOr<Profile> ParseProfile(absl::string_view text, absl::string_view name) {
  Parser parser(name);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    THIMBLE_RETURN_IF_ERROR(parser.ParseLine(line));
  }
  return parser.Finish();
}

absl::StatusOr<Profile> ReadProfileFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseProfile(text, path);
}

}  // namespace thimble::harmony
