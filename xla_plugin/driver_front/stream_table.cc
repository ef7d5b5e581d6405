#include "xla_plugin/driver_front/stream_table.h"

#include <mutex>

#include "xla_plugin/driver_front/pushed_context.h"
#include "xla_plugin/driver_front/real_driver.h"

namespace thimble::xla {

std::optional<std::uint64_t> StreamTable::NumberOf(CUstream stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number == kPerThreadStream) return std::nullopt;
  if (number == 0 || number == kLegacyStream) {
    // The legacy stream is that of the current context, whichever this is now.
    CUcontext current = nullptr;
    if (Real().cuCtxGetCurrent(&current) != kSuccess || current != primary_) return std::nullopt;
    return 0;
  }
  {
    const std::shared_lock lock(mutex_);
    const auto it = ours_.find(stream);
    if (it != ours_.end()) return it->second ? std::optional<std::uint64_t>(number) : std::nullopt;
  }
  CUcontext context = nullptr;
  const PushedContext pushed = PushedContext::IfNone(primary_);
  if (Real().cuStreamGetCtx(stream, &context) != kSuccess) return std::nullopt;
  const bool ours = context == primary_;
  const std::unique_lock lock(mutex_);
  ours_.emplace(stream, ours);
  return ours ? std::optional<std::uint64_t>(number) : std::nullopt;
}

bool StreamTable::Forget(CUstream stream) {
  const std::unique_lock lock(mutex_);
  return ours_.erase(stream) > 0;
}

}  // namespace thimble::xla
