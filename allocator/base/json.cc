#include "allocator/base/json.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace thimble {

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

std::string JsonNumber(double number) {
  return std::isfinite(number) ? absl::StrFormat("%.9g", number) : "null";
}

JsonObject& JsonObject::AddRaw(absl::string_view name, absl::string_view json) {
  absl::StrAppend(&members_, members_.empty() ? "" : ",", JsonString(name), ":", json);
  return *this;
}

}  // namespace thimble
