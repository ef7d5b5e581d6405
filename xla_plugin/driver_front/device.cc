#include "xla_plugin/driver_front/device.h"

#include <algorithm>

#include "xla_plugin/driver_front/message.h"
#include "xla_plugin/driver_front/pushed_context.h"
#include "xla_plugin/driver_front/real_driver.h"

namespace thimble::xla {
namespace {

std::uint64_t AsNumber(CUstream stream) { return reinterpret_cast<std::uintptr_t>(stream); }

void* AsBlock(CUdeviceptr pointer) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

}  // namespace

// --- The arena -----------------------------------------------------------------------------------

thimble_arena* Device::MakeArena() {
  if (thimble_arena* const made = arena()) return made;
  const std::lock_guard lock(mutex_);
  if (tried_) return arena();
  tried_ = true;
  const std::string error = TryMakeArena();
  if (!error.empty()) {
    Say("GPU " + std::to_string(identity_.ordinal) + " is left to the driver's own pool: " + error);
  }
  return arena();
}

std::string Device::TryMakeArena() {
  const std::string options =
      settings_.OptionsFor(identity_.ordinal, identity_.total_bytes, driver_, peers_);
  thimble_arena* made = nullptr;
  if (thimble_create(options.c_str(), &made) != THIMBLE_OK) return thimble_last_error();
  CUresult result = Real().cuDevicePrimaryCtxRetain(&primary_, identity_.handle);
  if (result == kSuccess) {
    const PushedContext pushed(primary_);
    result = Real().cuStreamCreate(&quiet_, kNonBlocking);
  }
  if (result != kSuccess) {
    thimble_destroy(made);
    return "the driver cannot create a stream, error " + std::to_string(result);
  }
  thimble_addresses addresses = {};
  addresses.struct_size = sizeof(addresses);
  thimble_get_addresses(made, &addresses);
  sizes_ = BlockSizes::Create(addresses);
  if (sizes_ == nullptr) {
    thimble_destroy(made);
    return "the process has no addresses left for a table of block sizes";
  }
  arena_.store(made, std::memory_order_release);
  return "";
}

CUresult Device::AddPeer(int peer) {
  const std::lock_guard lock(mutex_);
  if (peer == identity_.ordinal || std::count(peers_.begin(), peers_.end(), peer) > 0) {
    return kSuccess;
  }
  if (arena() != nullptr) {
    Say("GPU " + std::to_string(peer) + " cannot be given access to GPU " +
        std::to_string(identity_.ordinal) +
        " any more: request access before the first allocation there");
    return kNotSupported;
  }
  peers_.push_back(peer);
  return kSuccess;
}

// --- Blocks --------------------------------------------------------------------------------------

CUresult Device::Allocate(std::size_t bytes, std::optional<LocatedStream> stream,
                          CUdeviceptr* pointer) {
  const auto number = stream.has_value() ? NumberOf(*stream) : std::nullopt;
  void* block = nullptr;
  const thimble_status status = thimble_allocate(
      arena(), bytes, /*alignment=*/0, number.value_or(AsNumber(quiet_)), /*key=*/0, &block);
  if (status == THIMBLE_OUT_OF_MEMORY) failure_.Set(bytes, Named(thimble_last_error()));
  if (status != THIMBLE_OK) return ToResult(status);
  failure_.Fits(bytes);
  *pointer = reinterpret_cast<std::uintptr_t>(block);
  sizes_->Set(*pointer, bytes);
  return kSuccess;
}

CUresult Device::Free(CUdeviceptr pointer, std::optional<LocatedStream> stream) {
  const auto number = stream.has_value() ? NumberOf(*stream) : std::nullopt;
  if (!number.has_value()) {
    const CUresult result = stream.has_value() ? Synchronize(stream->handle) : Synchronize();
    if (result != kSuccess) return result;
  }
  return ToResult(thimble_free(arena(), AsBlock(pointer), number.value_or(AsNumber(quiet_))));
}

std::optional<HeldBlock> Device::Find(CUdeviceptr inside) const {
  thimble_block_info info = {};
  info.struct_size = sizeof(info);
  if (!Contains(inside) || thimble_query_inside(arena(), AsBlock(inside), &info) != THIMBLE_OK) {
    return std::nullopt;
  }
  const HeldBlock block = {info.address, sizes_->Get(info.address, info.bytes)};
  return inside - block.address < block.bytes ? std::optional(block) : std::nullopt;
}

std::optional<std::uint64_t> Device::NumberOf(const LocatedStream& stream) const {
  const std::uint64_t number = AsNumber(stream.handle);
  if (number == kPerThreadStream || stream.context != primary_) return std::nullopt;
  return number == kLegacyStream ? 0 : number;
}

CUresult Device::Synchronize(CUstream stream) const {
  const PushedContext pushed = PushedContext::IfNone(primary_);
  return Real().cuStreamSynchronize(stream);
}

CUresult Device::Synchronize() const {
  const PushedContext pushed(primary_);
  return pushed.result() == kSuccess ? Real().cuCtxSynchronize() : pushed.result();
}

void Device::ForgetStream(const LocatedStream& stream) {
  if (arena() == nullptr) return;
  // A failure means that the device and all its streams are lost.
  if (const auto number = NumberOf(stream)) thimble_forget_stream(arena(), *number);
}

void Device::UpdateDefaultPool() {
  const std::lock_guard lock(default_pool_mutex_);
  CUmemoryPool pool = nullptr;
  const bool known = Real().cuDeviceGetMemPool(&pool, identity_.handle) == kSuccess;
  serves_by_default_.store(known && pool == identity_.pool, std::memory_order_relaxed);
}

// --- Reports -------------------------------------------------------------------------------------

CUresult Device::ToResult(thimble_status status) {
  if (status == THIMBLE_OK) return kSuccess;
  if (status == THIMBLE_INVALID_ARGUMENT) return kInvalidValue;
  Report(thimble_last_error());
  if (status == THIMBLE_OUT_OF_MEMORY) return kOutOfMemory;
  return status == THIMBLE_UNAVAILABLE ? kDeviceUnavailable : kUnknown;
}

// XLA asks twice before it gives up, so the same report twice in a row is one failure.
void Device::Report(const std::string& text) {
  const std::uint64_t allocations = GetStats().allocations;
  const std::lock_guard lock(mutex_);
  if (text == last_report_ && allocations == allocations_at_last_report_) return;
  last_report_ = text;
  allocations_at_last_report_ = allocations;
  Say(Named(text));
}

std::string Device::Named(const std::string& text) const {
  return "GPU " + std::to_string(identity_.ordinal) + ": " + text;
}

thimble_stats Device::GetStats() const {
  thimble_stats stats = {};
  stats.struct_size = sizeof(stats);
  thimble_get_stats(arena(), &stats);
  return stats;
}

}  // namespace thimble::xla
