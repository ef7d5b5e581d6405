#include "allocator/offline/thimble_offline.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/c_status.h"
#include "allocator/offline/tools/tools.h"

namespace thimble {
namespace {

absl::StatusOr<std::string> Run(const char* tool, const char* const* arguments, size_t count) {
  if (tool == nullptr) return absl::InvalidArgumentError("tool is null");
  if (arguments == nullptr && count > 0) return absl::InvalidArgumentError("arguments is null");
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i] == nullptr) return absl::InvalidArgumentError("an argument is null");
  }
  try {
    return RunTool(tool, {arguments, arguments + count});
  } catch (const std::bad_alloc&) {
    return absl::InternalError("the host is out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace
}  // namespace thimble

extern "C" {

thimble_status thimble_offline_run(const char* tool, const char* const* arguments, size_t count,
                                   char** answer) {
  if (answer == nullptr) return THIMBLE_INVALID_ARGUMENT;
  const absl::StatusOr<std::string> ran = thimble::Run(tool, arguments, count);
  const std::string text(ran.ok() ? *ran : std::string(ran.status().message()));
  *answer = strdup(text.c_str());
  if (*answer == nullptr) return THIMBLE_INTERNAL;
  return thimble::CodeOf(ran.status());
}

void thimble_offline_free(char* answer) { std::free(answer); }

}  // extern "C"
