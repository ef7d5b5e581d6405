// Where handles of the driver's belong, streams or contexts: the driver is asked once for each.
//
// A handle must be removed before the driver destroys what it stands for: the next one may get the
// same number. A thread that has found a handle finds it again without a lock, until anything is
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
  Device* device = nullptr;  // nullptr: not known
  CUcontext context = nullptr;
};

class HandleTable {
 public:
  HandleTable();

  std::optional<Owner> Find(const void* handle) const;

  // Throws std::bad_alloc, and then the handle is not in the table.
  void Add(const void* handle, const Owner& owner);

  struct Entry {
    const void* handle = nullptr;
    Owner owner;
  };
  // What was removed.
  std::optional<Owner> Remove(const void* handle);
  std::vector<Entry> RemoveIf(const std::function<bool(const Owner&)>& condition);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, Owner> owners_;
};

}  // namespace thimble::xla
