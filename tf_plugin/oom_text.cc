#include "tf_plugin/oom_text.h"

#include <cstddef>

namespace thimble::tf {

std::string OomText(thimble_arena* arena, absl::string_view op) {
  const std::string caller(op);
  std::string text(2048, '\0');
  thimble_status status = THIMBLE_INVALID_ARGUMENT;
  // The text may have grown between two calls: another request may fail meanwhile.
  for (int attempt = 0; attempt < 3 && status != THIMBLE_OK; ++attempt) {
    std::size_t bytes = text.size();
    status = thimble_explain_text(arena, caller.c_str(), text.data(), &bytes);
    text.resize(bytes);
  }
  return text.c_str();
}

}  // namespace thimble::tf
