#include "tf_plugin/oom_text.h"

#include <cstdint>

namespace thimble::tf {
namespace {

struct Naming {
  const KeyNames& names;
  std::string last;  // stays until the next call
};

const char* NameOf(std::uint64_t key, void* context) {
  Naming& naming = *static_cast<Naming*>(context);
  naming.last = naming.names.NameOf(key);
  return naming.last.c_str();
}

}  // namespace

std::string OomText(thimble_arena* arena, absl::string_view op, const KeyNames& names) {
  Naming naming{names, ""};
  const std::string asker(op);
  std::string text(2048, '\0');
  thimble_status status = THIMBLE_INVALID_ARGUMENT;
  // Another request may fail meanwhile, with more to say.
  for (int attempt = 0; attempt < 3 && status != THIMBLE_OK; ++attempt) {
    std::size_t bytes = text.size();
    status = thimble_explain_text(arena, asker.c_str(), &NameOf, &naming, text.data(), &bytes);
    text.resize(bytes);
  }
  return text.c_str();
}

}  // namespace thimble::tf
