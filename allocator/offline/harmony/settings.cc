#include "allocator/offline/harmony/settings.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/bytes.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"

namespace thimble::harmony {
namespace {

absl::Status Refuse(absl::string_view key, absl::string_view value, absl::string_view remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, " ", Quote(value), " is not known: ", remedy));
}

absl::Status SetNumber(absl::string_view key, absl::string_view value, int most, int& number) {
  if (absl::SimpleAtoi(value, &number) && number >= 1 && number <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " ", Quote(value), " is not a whole number from 1 to ", most));
}

absl::Status SetSwitch(absl::string_view key, absl::string_view value, bool& setting) {
  setting = value == "on";
  if (value != "on" && value != "off") return Refuse(key, value, "write on or off");
  return absl::OkStatus();
}

absl::StatusOr<double> BytesOf(absl::string_view key, absl::string_view value) {
  THIMBLE_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(value));
  if (bytes > 0 && bytes <= 1024 * kTiB) return static_cast<double>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat(key, " ", Quote(value), " is not from 1 byte to 1024TiB"));
}

absl::StatusOr<PackerList> PackersOf(absl::string_view key, absl::string_view value) {
  if (value == "published") return PackersOfTheRuns();
  if (value == "all") return DefaultPackers();
  PackerList packers;
  bool cuts_backward = false;
  for (const absl::string_view name : absl::StrSplit(value, '+')) {
    int which = 0;
    while (which < kPackers && NameOf(static_cast<Packer>(which)) != name) ++which;
    if (which == kPackers) {
      std::string names;
      for (int i = 0; i < kPackers; ++i) {
        absl::StrAppend(&names, i == 0 ? "" : ", ", NameOf(static_cast<Packer>(i)));
      }
      return Refuse(key, name,
                    absl::StrCat("write published, all, or some of ", names, " with + between"));
    }
    packers.push_back(static_cast<Packer>(which));
    cuts_backward |= packers.back() != Packer::kReuse;
  }
  if (cuts_backward) return packers;
  return absl::InvalidArgumentError(absl::StrCat(
      key, " ", Quote(value), " has no backward packs to reuse: name another packer too"));
}

}  // namespace

absl::Status Set(absl::string_view key, absl::string_view value, Settings& settings) {
  if (key == "gpus") return SetNumber(key, value, kMaxGpus, settings.gpus);
  if (key == "batch") return SetNumber(key, value, kMaxBatch, settings.batch);
  if (key == "memory") {
    THIMBLE_ASSIGN_OR_RETURN(settings.memory_bytes, BytesOf(key, value));
  } else if (key == "mode") {
    settings.mode.reset();
    if (value == "dp") {
      settings.mode = Mode::kDataParallel;
    } else if (value == "pp") {
      settings.mode = Mode::kPipeline;
    } else if (value != "auto") {
      return Refuse(key, value, "write dp, pp or auto");
    }
  } else if (key == "rules") {
    settings.rules = value == "harmony" ? Rules::kHarmony : Rules::kThimble;
    if (value != "harmony" && value != "thimble") {
      return Refuse(key, value, "write thimble or harmony");
    }
  } else if (key == "prefetch") {
    return SetSwitch(key, value, settings.prefetch);
  } else if (key == "keep") {
    return SetSwitch(key, value, settings.keep);
  } else if (key == "resident") {
    return SetSwitch(key, value, settings.resident);
  } else if (key == "packers") {
    THIMBLE_ASSIGN_OR_RETURN(settings.packers, PackersOf(key, value));
  } else if (key == "seconds") {
    if (!absl::SimpleAtod(value, &settings.seconds) ||
        !(settings.seconds >= 0 && settings.seconds <= kMostSearchSeconds)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "seconds ", Quote(value), " is not a number from 0 to ", kMostSearchSeconds));
    }
  } else if (key == "swap_limit") {
    settings.swap_limit = 0;
    if (value != "off") {
      THIMBLE_ASSIGN_OR_RETURN(settings.swap_limit, BytesOf(key, value));
    }
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        Quote(key),
        " is not a setting: write gpus, memory, batch, mode, rules, prefetch, packers, ",
        "keep, resident, seconds or swap_limit"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> ReadSettings(
    const std::vector<std::pair<std::string, std::string>>& values) {
  Settings settings;
  for (const auto& [key, value] : values) THIMBLE_RETURN_IF_ERROR(Set(key, value, settings));
  return settings;
}

}  // namespace thimble::harmony
