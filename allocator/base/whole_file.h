// Whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble {

// kNotFound if there is no such file, kUnavailable for every other reason; both name it. What comes
// after `most` bytes is not read.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::size_t most = SIZE_MAX);
// Who reads the file meanwhile gets all of the old text or all of the new one, and an error, such
// as a full disk, leaves the old one, or none. What is no file, such as /dev/stdout, is written as
// it is.
absl::Status WriteWholeFile(absl::string_view text, const std::string& path);

}  // namespace thimble
