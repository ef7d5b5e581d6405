#include "tests/bench/arguments.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace thimble::bench {

bool Arguments::Next() {
  if (next_ == words_.size()) return false;
  word_ = words_[next_++];
  return true;
}

bool Arguments::IsValueOf(absl::string_view name) {
  if (word_ == name) {
    value_ = next_ < words_.size() ? words_[next_++] : absl::string_view();
    return true;
  }
  absl::string_view rest = word_;
  if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumePrefix(&rest, "=")) return false;
  value_ = rest;
  return true;
}

absl::StatusOr<std::uint64_t> Arguments::Number(absl::string_view name, std::uint64_t least,
                                                std::uint64_t most) const {
  std::uint64_t number = 0;
  if (absl::SimpleAtoi(value_, &number) && least <= number && number <= most) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " '", value_, "' is not a number from ", least, " to ", most));
}

}  // namespace thimble::bench
