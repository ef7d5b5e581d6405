// Counts how much of each device's memory is taken, by what, and the peak.
//
// Chunks of cuMemCreate may lie on the host: it has an account too, and no limit.
//
// A pool's memory is charged when the pool takes it from the device and refunded when the pool
// gives it back. What the program frees stays cached until then.
//
// Not thread-safe: Memory holds its lock.
#pragma once

#include <array>
#include <vector>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

enum class Kind { kPlain, kVirtual, kPool, kGlobal, kManaged };
inline constexpr int kKinds = 5;

// As messages call it.
const char* KindName(Kind kind);

struct Account {
  Bytes total = 0;
  Bytes reserve = 0;
  Bytes taken = 0;
  Bytes peak = 0;
  std::array<Bytes, kKinds> by_kind = {};

  Bytes free_bytes() const { return total - reserve - taken; }
};

class Accounts {
 public:
  explicit Accounts(const Options& options);

  // False if the device has less than that.
  bool Charge(int device, Kind kind, Bytes bytes);
  void Refund(int device, Kind kind, Bytes bytes);
  const Account& Of(int device) const { return accounts_[Place(device)]; }

 private:
  static std::size_t Place(int device) { return static_cast<std::size_t>(device - kHost); }

  std::vector<Account> accounts_;  // the host's first
};

}  // namespace simgpu
