#include "tests/simgpu/driver/accounts.h"

#include <algorithm>
#include <limits>

namespace simgpu {

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kPlain:
      return "cuMemAlloc";
    case Kind::kVirtual:
      return "cuMemCreate";
    case Kind::kPool:
      return "cuMemAllocAsync";
    case Kind::kGlobal:
      return "a module";
    case Kind::kManaged:
      return "cuMemAllocManaged";
  }
  return "";
}

Accounts::Accounts(const Options& options) {
  accounts_.emplace_back().total = std::numeric_limits<Bytes>::max();
  for (int device = 0; device < options.gpus; ++device) {
    Account account;
    account.total = options.MemoryOf(device);
    account.reserve = std::min(options.reserve, account.total);
    accounts_.push_back(account);
  }
}

bool Accounts::Charge(int device, Kind kind, Bytes bytes) {
  Account& account = accounts_[Place(device)];
  // What a module holds is part of the context's reserve on a real device.
  if (kind == Kind::kGlobal) return true;
  if (bytes > account.free_bytes()) return false;
  account.taken += bytes;
  account.by_kind[static_cast<std::size_t>(kind)] += bytes;
  account.peak = std::max(account.peak, account.taken);
  return true;
}

void Accounts::Refund(int device, Kind kind, Bytes bytes) {
  if (kind == Kind::kGlobal) return;
  Account& account = accounts_[Place(device)];
  account.taken -= bytes;
  account.by_kind[static_cast<std::size_t>(kind)] -= bytes;
}

}  // namespace simgpu
