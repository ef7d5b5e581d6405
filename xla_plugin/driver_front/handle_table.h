// Remembers to which device and context the driver's streams or contexts belong, so that the driver
// is asked once for each.
//
// Remove a handle before the driver destroys its object, because the next object may get the same
// handle. A thread that has found a handle finds it again without a lock, until anything is
// removed.
//
// Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

class Device;

struct Owner {
  Device* device = nullptr;  // nullptr: unknown
  CUcontext context = nullptr;
};

class HandleTable {
 public:
  HandleTable();

  std::optional<Owner> Find(const void* handle) const;

  // If it throws std::bad_alloc, the handle is not in the table.
  void Add(const void* handle, const Owner& owner);

  struct Entry {
    const void* handle = nullptr;
    Owner owner;
  };
  // Returns what was removed.
  std::optional<Owner> Remove(const void* handle);
  std::vector<Entry> RemoveIf(const std::function<bool(const Owner&)>& condition);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, Owner> owners_;
};

}  // namespace thimble::xla
