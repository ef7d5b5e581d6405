#include "allocator/offline/tools/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

template <typename Pairs>
auto FindName(Pairs& pairs, absl::string_view name) {
  return std::find_if(pairs.begin(), pairs.end(),
                      [&](const auto& pair) { return pair.first == name; });
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(const std::vector<std::string>& texts) {
  Arguments arguments;
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(Quote(text), " is not NAME=VALUE"));
    }
    const std::string name = text.substr(0, sign);
    if (FindName(arguments.rest_, name) != arguments.rest_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(Quote(name), " is given twice"));
    }
    arguments.rest_.emplace_back(name, text.substr(sign + 1));
  }
  return arguments;
}

std::string Arguments::Take(absl::string_view name) {
  const auto found = FindName(rest_, name);
  if (found == rest_.end()) return "";
  std::string value = std::move(found->second);
  rest_.erase(found);
  return value;
}

absl::StatusOr<std::string> Arguments::Need(absl::string_view name) {
  std::string value = Take(name);
  if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
  return value;
}

absl::StatusOr<bool> Arguments::TakeSwitch(absl::string_view name) {
  const std::string value = Take(name);
  if (value.empty() || value == "off") return false;
  if (value == "on") return true;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " ", Quote(value), " is not known: write on or off"));
}

absl::Status Arguments::CheckAllTaken() const {
  if (rest_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(rest_.front().first), " is not an argument of this tool"));
}

}  // namespace thimble
