#include "xla_plugin/driver_front/front.h"

#include <algorithm>
#include <utility>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/pushed_context.h"
#include "xla_plugin/driver_front/real_driver.h"

namespace thimble::xla {
namespace {

std::string Failed(const char* call, CUresult result) {
  return std::string(call) + " of the CUDA driver returned error " + std::to_string(result);
}

// Returns "" or what the GPU lacks.
std::string CheckAttribute(int ordinal, CUdevice device, int attribute, const char* what) {
  int supported = 0;
  const CUresult result = Real().cuDeviceGetAttribute(&supported, attribute, device);
  if (result != kSuccess) return Failed("cuDeviceGetAttribute", result);
  if (supported != 0) return "";
  return "GPU " + std::to_string(ordinal) + " has no " + what;
}

}  // namespace

Front& Front::Get() {
  static Front* const front = new Front;
  return *front;
}

std::string Front::Open(const std::string& driver) {
  if (driver.find(',') != std::string::npos) {
    return "'" + driver +
           "' has a comma in its path, which options cannot contain: link the driver elsewhere";
  }
  driver_ = driver;
  return OpenRealDriver(driver);
}

std::string Front::Start(const std::string& conf, const JaxOptions& jax) {
  if (on()) return "the front has already been started";
  Settings settings;
  std::string error = settings.Read(conf, jax);
  if (error.empty()) {
    settings_ = std::move(settings);
    error = FindDevices();
  }
  if (!error.empty()) {
    devices_.clear();
    return error;
  }
  on_.store(true, std::memory_order_release);
  return "";
}

std::string Front::FindDevices() {
  int count = 0;
  CUresult result = Real().cuInit(0);
  if (result != kSuccess) return Failed("cuInit", result);
  result = Real().cuDeviceGetCount(&count);
  if (result != kSuccess) return Failed("cuDeviceGetCount", result);
  if (count == 0) return "the CUDA driver finds no GPU";
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceIdentity identity;
    identity.ordinal = ordinal;
    result = Real().cuDeviceGet(&identity.handle, ordinal);
    if (result != kSuccess) return Failed("cuDeviceGet", result);
    result = Real().cuDeviceTotalMem_v2(&identity.total_bytes, identity.handle);
    if (result != kSuccess) return Failed("cuDeviceTotalMem", result);
    std::string error = CheckAttribute(ordinal, identity.handle, kVirtualMemorySupported,
                                       "virtual memory management");
    if (error.empty()) {
      error = CheckAttribute(ordinal, identity.handle, kMemoryPoolsSupported, "memory pools");
    }
    if (error.empty()) error = settings_.CheckFor(identity.total_bytes);
    if (!error.empty()) return error;
    result = Real().cuDeviceGetDefaultMemPool(&identity.pool, identity.handle);
    if (result != kSuccess) return Failed("cuDeviceGetDefaultMemPool", result);
    devices_.push_back(std::make_unique<Device>(identity, settings_, driver_, failure_));
    devices_.back()->UpdateDefaultPool();
  }
  return "";
}

double Front::fraction() const {
  double smallest = 1;
  for (const auto& device : devices_) {
    smallest = std::min(smallest, static_cast<double>(device->limit()) /
                                      static_cast<double>(device->identity().total_bytes));
  }
  return smallest;
}

// --- Whose call is it? ---------------------------------------------------------------------------

Device* Front::DeviceOf(int ordinal) const {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()) return nullptr;
  return devices_[static_cast<std::size_t>(ordinal)].get();
}

Device* Front::DeviceOfContext() const {
  CUdevice current = 0;
  if (Real().cuCtxGetDevice(&current) != kSuccess) return nullptr;
  for (const auto& device : devices_) {
    if (device->identity().handle == current) return device.get();
  }
  return nullptr;
}

Device* Front::DeviceOfPool(CUmemoryPool pool) const {
  for (const auto& device : devices_) {
    if (device->identity().pool == pool) return device.get();
  }
  return nullptr;
}

Device* Front::DeviceOfAddress(CUdeviceptr address) const {
  for (const auto& device : devices_) {
    if (device->Contains(address)) return device.get();
  }
  return nullptr;
}

void Front::UpdateDefaultPools() {
  if (!on()) return;
  for (const auto& device : devices_) device->UpdateDefaultPool();
}

// --- Streams -------------------------------------------------------------------------------------

Owner Front::OwnerOf(CUstream stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number == 0 || number == kLegacyStream || number == kPerThreadStream) {
    return OwnerOfCurrentContext();
  }
  if (const auto known = streams_.Find(stream)) return *known;
  CUcontext any = nullptr;
  for (const auto& device : devices_) {
    if (any == nullptr) any = device->primary();
  }
  Owner owner;
  {
    const PushedContext pushed = PushedContext::IfNone(any);
    if (Real().cuStreamGetCtx(stream, &owner.context) != kSuccess) return {};
  }
  const PushedContext pushed(owner.context);
  if (pushed.result() == kSuccess) owner.device = DeviceOfContext();
  if (owner.device != nullptr) streams_.Add(stream, owner);
  return owner;
}

Owner Front::OwnerOfCurrentContext() {
  Owner owner;
  if (Real().cuCtxGetCurrent(&owner.context) != kSuccess || owner.context == nullptr) return {};
  if (const auto known = contexts_.Find(owner.context)) return *known;
  owner.device = DeviceOfContext();
  if (owner.device != nullptr) contexts_.Add(owner.context, owner);
  return owner;
}

LocatedStream Front::Locate(CUstream stream) {
  const bool is_per_thread = reinterpret_cast<std::uintptr_t>(stream) == kPerThreadStream;
  return {stream, is_per_thread ? nullptr : OwnerOf(stream).context};
}

void Front::Forget(CUstream stream) {
  if (const auto owner = streams_.Remove(stream)) {
    owner->device->ForgetStream({stream, owner->context});
  }
}

void Front::ForgetIf(const std::function<bool(const Owner&)>& condition) {
  contexts_.RemoveIf(condition);
  for (const HandleTable::Entry& stream : streams_.RemoveIf(condition)) {
    stream.owner.device->ForgetStream(
        {static_cast<CUstream>(const_cast<void*>(stream.handle)), stream.owner.context});
  }
}

}  // namespace thimble::xla
