// The calls of a Driver as values: for drivers that wrap another one and count, delay, price or
// fail its calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace thimble {

enum class DriverCall : std::uint8_t {
  kReserve,
  kRelease,
  kCreate,
  kDestroy,
  kMap,
  kUnmap,
  kSetAccess,
  kCopy,
  kPinHost,
  kUnpinHost,
  kRecord,
  kPassed,
  kWait,
  kGetMemoryInfo,
};

inline constexpr std::size_t kDriverCallCount = 14;

inline constexpr std::array<DriverCall, kDriverCallCount> kAllDriverCalls = {
    DriverCall::kReserve, DriverCall::kRelease,       DriverCall::kCreate,    DriverCall::kDestroy,
    DriverCall::kMap,     DriverCall::kUnmap,         DriverCall::kSetAccess, DriverCall::kCopy,
    DriverCall::kPinHost, DriverCall::kUnpinHost,     DriverCall::kRecord,    DriverCall::kPassed,
    DriverCall::kWait,    DriverCall::kGetMemoryInfo,
};

// The name of the member function: "Reserve", "SetAccess".
constexpr const char* DriverCallName(DriverCall call) {
  constexpr std::array<const char*, kDriverCallCount> kNames = {
      "Reserve", "Release", "Create",    "Destroy", "Map",    "Unmap", "SetAccess",
      "Copy",    "PinHost", "UnpinHost", "Record",  "Passed", "Wait",  "GetMemoryInfo",
  };
  return kNames[static_cast<std::size_t>(call)];
}

// A set of calls, as a plain value.
class DriverCallSet {
 public:
  constexpr DriverCallSet() = default;
  constexpr DriverCallSet(std::initializer_list<DriverCall> calls) {
    for (const DriverCall call : calls) bits_ |= Bit(call);
  }

  static constexpr DriverCallSet All() {
    DriverCallSet all;
    all.bits_ = (std::uint32_t{1} << kDriverCallCount) - 1;
    return all;
  }

  constexpr bool Contains(DriverCall call) const { return (bits_ & Bit(call)) != 0; }

 private:
  static constexpr std::uint32_t Bit(DriverCall call) {
    return std::uint32_t{1} << static_cast<unsigned>(call);
  }

  std::uint32_t bits_ = 0;
};

// How often each call was made. Thread-safe; a reader that races with a call may miss it.
class DriverCallCounts {
 public:
  void Add(DriverCall call) { Of(call).fetch_add(1, std::memory_order_relaxed); }

  std::uint64_t count(DriverCall call) const {
    return counts_[static_cast<std::size_t>(call)].load(std::memory_order_relaxed);
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const DriverCall call : kAllDriverCalls) sum += count(call);
    return sum;
  }
  void Reset() {
    for (const DriverCall call : kAllDriverCalls) Of(call).store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t>& Of(DriverCall call) {
    return counts_[static_cast<std::size_t>(call)];
  }

  std::array<std::atomic<std::uint64_t>, kDriverCallCount> counts_{};
};

}  // namespace thimble
