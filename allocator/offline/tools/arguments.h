// The arguments of a tool: values by name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble {

class Arguments {
 public:
  // Parses texts NAME=VALUE, each name once.
  static absl::StatusOr<Arguments> Parse(const std::vector<std::string>& texts);

  // Takes a value; "" if it was not given.
  std::string Take(absl::string_view name);
  // The same for a required value.
  absl::StatusOr<std::string> Need(absl::string_view name);
  // The same for "on" or "off"; off if it was not given.
  absl::StatusOr<bool> TakeSwitch(absl::string_view name);

  // The values that were not taken.
  const std::vector<std::pair<std::string, std::string>>& rest() const { return rest_; }
  // Refuses values that were not taken.
  absl::Status CheckAllTaken() const;

 private:
  std::vector<std::pair<std::string, std::string>> rest_;
};

}  // namespace thimble
