#include "tf_plugin/arenas.h"

#include <algorithm>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tf_plugin/tf_plugin.h"

namespace thimble::tf {
namespace {

struct Published {
  absl::Mutex mutex;
  std::map<int, thimble_arena*> arenas ABSL_GUARDED_BY(mutex);
};

Published& Arenas() {
  static Published* const published = new Published;  // lives as long as its arenas
  return *published;
}

absl::StatusOr<thimble_arena*> Create(const Settings& settings, const DeviceSettings& device) {
  thimble_arena* arena = nullptr;
  const thimble_status status = thimble_create(CoreOptions(settings, device).c_str(), &arena);
  if (status != THIMBLE_OK) return ToStatus(status);
  return arena;
}

}  // namespace

absl::Status ToStatus(thimble_status status) {
  const std::string text = thimble_last_error();
  switch (status) {
    case THIMBLE_OK:
      return absl::OkStatus();
    case THIMBLE_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(text);
    case THIMBLE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(text);
    case THIMBLE_UNAVAILABLE:
      return absl::UnavailableError(text);
    case THIMBLE_INTERNAL:
      break;
  }
  return absl::InternalError(text);
}

std::uint64_t LimitOf(thimble_arena* arena) {
  thimble_stats stats = {};
  stats.struct_size = sizeof(stats);
  thimble_get_stats(arena, &stats);
  return stats.limit;
}

absl::StatusOr<thimble_arena*> OpenArena(const Settings& settings, DeviceSettings device) {
  if (settings.limit) {
    std::uint64_t limit = 0;
    const thimble_status read = thimble_parse_size(settings.limit->c_str(), &limit);
    if (read != THIMBLE_OK) return ToStatus(read);
    if (device.limit != 0 && limit > device.limit) {
      LOG(WARNING) << "Thimble: limit:" << *settings.limit << " is above the " << device.limit
                   << " bytes that TensorFlow allows for GPU:" << device.index
                   << "; the lower limit applies.";
    }
    device.limit = device.limit == 0 ? limit : std::min(device.limit, limit);
  }
  device.preallocate = settings.preallocate.value_or(device.preallocate);
  absl::StatusOr<thimble_arena*> arena = Create(settings, device);
  if (absl::IsResourceExhausted(arena.status()) && device.preallocate) {
    LOG(WARNING) << "Thimble: " << device.limit << " bytes cannot be preallocated ("
                 << arena.status().message() << "). Memory grows as needed instead.";
    device.preallocate = false;
    arena = Create(settings, device);
  }
  return arena;
}

void PublishArena(int index, thimble_arena* arena) {
  Published& published = Arenas();
  absl::MutexLock lock(&published.mutex);
  published.arenas[index] = arena;
}

thimble_arena* FindArena(int index) {
  Published& published = Arenas();
  absl::MutexLock lock(&published.mutex);
  const auto found = published.arenas.find(index);
  return found == published.arenas.end() ? nullptr : found->second;
}

}  // namespace thimble::tf
