#include "allocator/c_status.h"

#include <string>
#include <utility>

namespace thimble {
namespace {

// A pointer needs only eight bytes of thread-local storage. A plain pointer is still valid in
// destructors that run after ours.
thread_local std::string* last_error = nullptr;

struct AtThreadEnd {
  void Expect() {}  // creates the thread-local object, so that its destructor runs
  ~AtThreadEnd() { delete std::exchange(last_error, nullptr); }
};
thread_local AtThreadEnd at_thread_end;  // at namespace scope its guard is one byte, not eight

}  // namespace

thimble_status Fail(thimble_status code, absl::string_view text) {
  at_thread_end.Expect();
  try {
    if (last_error == nullptr) last_error = new std::string;
    last_error->assign(text.data(), text.size());
  } catch (const std::bad_alloc&) {
    // No memory for the message: return only the code.
    if (last_error != nullptr) last_error->clear();
  }
  return code;
}

thimble_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return THIMBLE_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return THIMBLE_INVALID_ARGUMENT;
    case absl::StatusCode::kResourceExhausted:
      return THIMBLE_OUT_OF_MEMORY;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
      return THIMBLE_UNAVAILABLE;
    default:
      return THIMBLE_INTERNAL;
  }
}

thimble_status FromStatus(const absl::Status& status) {
  return status.ok() ? THIMBLE_OK : Fail(CodeOf(status), status.message());
}

thimble_status NullArgument(const char* name) {
  return Fail(THIMBLE_INVALID_ARGUMENT, std::string(name) + " is null");
}

}  // namespace thimble

extern "C" {

const char* thimble_last_error(void) {
  return thimble::last_error == nullptr ? "" : thimble::last_error->c_str();
}

}  // extern "C"
