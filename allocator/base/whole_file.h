// Reads and writes whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble {

// kNotFound if there is no such file, kUnavailable for any other failure; both name the file. Reads
// at most `most` bytes.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::size_t most = SIZE_MAX);
// A concurrent reader sees all of the old text or all of the new one. An error, such as a full
// disk, leaves the old file, or none. A path that is no regular file, such as /dev/stdout, is
// written directly.
absl::Status WriteWholeFile(absl::string_view text, const std::string& path);

}  // namespace thimble
