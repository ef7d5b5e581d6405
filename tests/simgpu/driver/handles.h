// Objects that a program knows by an opaque handle. Handles are numbers that are never reused, not
// pointers, so the use of a destroyed object is always detected and never touches freed memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace simgpu {

template <typename Handle, typename T>
class HandleTable {
 public:
  Handle Add(std::shared_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mutex_);
    next_ += kStep;
    objects_.emplace(next_, std::move(object));
    return ToHandle(next_);
  }

  // Null if there is none: never made, or destroyed.
  std::shared_ptr<T> Find(Handle handle) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(ToNumber(handle));
    return found == objects_.end() ? nullptr : found->second;
  }

  // The object as it was, or null.
  std::shared_ptr<T> Remove(Handle handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(ToNumber(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  std::vector<std::shared_ptr<T>> All() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [number, object] : objects_) all.push_back(object);
    return all;
  }

  std::size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return objects_.size();
  }

  // Earlier handles stay invalid.
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    objects_.clear();
  }

 private:
  // The first page is never mapped, and small numbers are special streams: stay far from both.
  static constexpr std::uintptr_t kFirst = 0x51000000;
  // Leaves low bits free for programs that hide bits in pointers.
  static constexpr std::uintptr_t kStep = 16;

  static Handle ToHandle(std::uintptr_t number) {
    if constexpr (std::is_pointer_v<Handle>) {
      return reinterpret_cast<Handle>(number);
    } else {
      return static_cast<Handle>(number);
    }
  }
  static std::uintptr_t ToNumber(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>) {
      return reinterpret_cast<std::uintptr_t>(handle);
    } else {
      return static_cast<std::uintptr_t>(handle);
    }
  }

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<T>> objects_;
  std::uintptr_t next_ = kFirst;
};

}  // namespace simgpu
