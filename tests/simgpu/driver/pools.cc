#include "tests/simgpu/driver/pools.h"

#include <algorithm>

namespace simgpu {
namespace {

constexpr Bytes kGrain = 512;
constexpr Bytes kAbsurd = Bytes{1} << 46;  // more than a process can address

Bytes RoundUp(Bytes bytes, Bytes to) { return (bytes + to - 1) / to * to; }
Bytes Cost(Bytes bytes) { return RoundUp(bytes, kGrain); }

}  // namespace

Pools::Pools(const Options& options, Memory& memory)
    : granularity_(options.granularity), memory_(memory) {
  for (int device = 0; device < options.gpus; ++device) {
    defaults_.push_back(Create(device, 0));
    pools_.Find(defaults_.back())->is_default = true;
  }
  current_ = defaults_;
  memory_.SetReclaim([this](int device) { Reclaim(device); });
}

CUmemoryPool Pools::Create(int device, Bytes most) {
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  pool->access = 1u << device;
  pool->most = most;
  const CUmemoryPool handle = pools_.Add(pool);
  pool->handle = handle;
  return handle;
}

Outcome Pools::Destroy(CUmemoryPool handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Pool> pool = pools_.Find(handle);
  if (pool == nullptr) return Illegal(CUDA_ERROR_INVALID_VALUE, "the pool is not alive");
  if (pool->is_default) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "the default pool of a device cannot be destroyed");
  }
  pools_.Remove(handle);
  CUmemoryPool& current = current_[static_cast<std::size_t>(pool->device)];
  if (current == handle) current = Default(pool->device);
  pool->is_destroyed = true;
  TrimLocked(*pool, 0);
  if (pool->used > 0) dying_.emplace(handle, pool);
  return Success();
}

CUmemoryPool Pools::Current(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return current_[static_cast<std::size_t>(device)];
}

void Pools::SetCurrent(int device, CUmemoryPool handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  current_[static_cast<std::size_t>(device)] = handle;
}

Outcome Pools::Allocate(CUmemoryPool handle, Bytes bytes, Address* address) {
  const std::shared_ptr<Pool> pool = pools_.Find(handle);
  if (pool == nullptr) return Illegal(CUDA_ERROR_INVALID_VALUE, "the pool is not alive");
  if (bytes == 0) return Failure(CUDA_ERROR_INVALID_VALUE);
  if (bytes > kAbsurd) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  std::lock_guard<std::mutex> lock(mutex_);
  const Bytes cost = Cost(bytes);
  Bytes offset = 0;
  if (!pool->line.Take(cost, &offset)) {
    if (!Grow(*pool, cost)) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
    pool->line.Take(cost, &offset);
  }
  const Outcome outcome =
      memory_.AllocateFromPool(handle, pool->device, pool->access, bytes, address);
  if (!outcome.ok()) {
    pool->line.Give(offset, cost);
    return outcome;
  }
  pool->offsets.emplace(*address, offset);
  pool->used += cost;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  return Success();
}

bool Pools::Charge(Pool& pool, Bytes bytes) {
  if (pool.most != 0 && pool.reserved + bytes > pool.most) return false;
  if (!memory_.Charge(pool.device, Kind::kPool, bytes)) return false;
  pool.line.Grow(bytes);
  pool.reserved += bytes;
  return true;
}

bool Pools::Grow(Pool& pool, Bytes cost) {
  if (Charge(pool, RoundUp(pool.line.MissingAtEnd(cost), PoolLine::kSegment))) return true;
  for (const std::shared_ptr<Pool>& other : pools_.All()) {
    if (other->device == pool.device) TrimLocked(*other, 0);
  }
  const Bytes missing = pool.line.MissingAtEnd(cost);
  return Charge(pool, RoundUp(missing, PoolLine::kSegment)) ||
         Charge(pool, RoundUp(missing, granularity_));
}

Outcome Pools::Free(Address address, const char* by) {
  Segment segment;
  Bytes bytes = 0;
  const Outcome outcome = memory_.Free(Kind::kPool, address, by, &segment, &bytes);
  if (!outcome.ok()) return outcome;
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Pool> pool = pools_.Find(segment.pool);
  if (pool == nullptr) pool = dying_[segment.pool];
  const auto offset = pool->offsets.find(address);
  pool->line.Give(offset->second, Cost(bytes));
  pool->offsets.erase(offset);
  pool->used -= Cost(bytes);
  if (pool->is_destroyed) {
    TrimLocked(*pool, 0);
    if (pool->used == 0) dying_.erase(segment.pool);
  }
  return Success();
}

void Pools::SetAccess(Pool& pool, std::uint32_t grant, std::uint32_t revoke) {
  std::lock_guard<std::mutex> lock(mutex_);
  pool.access = (pool.access & ~revoke) | grant;
  memory_.SetPoolAccess(pool.handle, pool.access);
}

Outcome Pools::SetAttribute(Pool& pool, CUmemPool_attribute attribute, void* value) {
  std::lock_guard<std::mutex> lock(mutex_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool.follow_events = *static_cast<int*>(value);
      return Success();
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool.opportunistic = *static_cast<int*>(value);
      return Success();
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.internal_dependencies = *static_cast<int*>(value);
      return Success();
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.threshold = *static_cast<cuuint64_t*>(value);
      return Success();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: {
      if (*static_cast<cuuint64_t*>(value) != 0) {
        return Illegal(CUDA_ERROR_INVALID_VALUE, "a high-water mark can only be set to zero");
      }
      const bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
      (reserved ? pool.reserved_high : pool.used_high) = reserved ? pool.reserved : pool.used;
      return Success();
    }
    default:
      return Illegal(CUDA_ERROR_INVALID_VALUE,
                     "attribute " + std::to_string(attribute) + " cannot be set");
  }
}

Outcome Pools::GetAttribute(Pool& pool, CUmemPool_attribute attribute, void* value) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto number = [value](int is) { *static_cast<int*>(value) = is; };
  const auto size = [value](Bytes is) { *static_cast<cuuint64_t*>(value) = is; };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      number(pool.follow_events);
      return Success();
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      number(pool.opportunistic);
      return Success();
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      number(pool.internal_dependencies);
      return Success();
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      size(pool.threshold);
      return Success();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      size(pool.reserved);
      return Success();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      size(pool.reserved_high);
      return Success();
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      size(pool.used);
      return Success();
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      size(pool.used_high);
      return Success();
    default:
      return Failure(CUDA_ERROR_INVALID_VALUE);
  }
}

void Pools::TrimLocked(Pool& pool, Bytes keep) {
  if (pool.reserved <= keep) return;
  const Bytes given = pool.line.Shrink(pool.reserved - keep);
  memory_.Refund(pool.device, Kind::kPool, given);
  pool.reserved -= given;
}

void Pools::Trim(Pool& pool, Bytes keep) {
  std::lock_guard<std::mutex> lock(mutex_);
  TrimLocked(pool, keep);
}

void Pools::Waited(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Pool>& pool : pools_.All()) {
    if (pool->device == device) TrimLocked(*pool, pool->threshold);
  }
}

// Memory asks for this outside of its lock, and never from inside a call of ours.
void Pools::Reclaim(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Pool>& pool : pools_.All()) {
    if (pool->device == device) TrimLocked(*pool, 0);
  }
}

}  // namespace simgpu
