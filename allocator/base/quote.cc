#include "allocator/base/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace thimble {

std::string Quote(absl::string_view text) {
  constexpr std::size_t kShown = 60;
  const bool cut = text.size() > kShown;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)), cut ? "...'" : "'");
}

}  // namespace thimble
