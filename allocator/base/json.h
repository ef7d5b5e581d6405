// Writes JSON.
#pragma once

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace thimble {

// `text` as a JSON string, quoted and escaped.
std::string JsonString(absl::string_view text);
// A number; null if it is not finite.
std::string JsonNumber(double number);

// An object, member by member.
class JsonObject {
 public:
  template <typename Number, typename = std::enable_if_t<std::is_integral_v<Number>>>
  JsonObject& Add(absl::string_view name, Number number) {
    return AddRaw(name, absl::StrCat(number));
  }
  JsonObject& Add(absl::string_view name, bool value) {
    return AddRaw(name, value ? "true" : "false");
  }
  JsonObject& Add(absl::string_view name, double number) {
    return AddRaw(name, JsonNumber(number));
  }
  JsonObject& Add(absl::string_view name, absl::string_view text) {
    return AddRaw(name, JsonString(text));
  }
  JsonObject& Add(absl::string_view name, const char* text) {
    return Add(name, absl::string_view(text));
  }
  // `json` is JSON already, such as an object or a list.
  JsonObject& AddRaw(absl::string_view name, absl::string_view json);

  std::string Text() const { return absl::StrCat("{", members_, "}"); }

 private:
  std::string members_;
};

}  // namespace thimble
