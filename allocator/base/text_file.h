// Whole files of text.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble {

// kNotFound if there is no such file, kUnavailable for every other reason; both name it.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);
absl::Status WriteTextFile(absl::string_view text, const std::string& path);

}  // namespace thimble
