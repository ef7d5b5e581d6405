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

// "" or what the GPU lacks.
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
    return "'" + driver + "' cannot be an option, for its comma: link the driver elsewhere";
  }
  driver_ = driver;
  return OpenRealDriver(driver);
}

std::string Front::Start(const std::string& conf, const JaxOptions& jax) {
  if (on()) return "the front was started already";
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

Device* Front::DeviceOfStream(CUstream stream) const {
  CUcontext context = nullptr;
  if (Real().cuStreamGetCtx(stream, &context) != kSuccess) return nullptr;
  const PushedContext pushed(context);
  const Device* const device = pushed.result() == kSuccess ? DeviceOfContext() : nullptr;
  CUmemoryPool pool = nullptr;
  if (device == nullptr ||
      Real().cuDeviceGetMemPool(&pool, device->identity().handle) != kSuccess) {
    return nullptr;
  }
  return DeviceOfPool(pool);  // nullptr if somebody put a pool of their own in its place
}

// --- Blocks --------------------------------------------------------------------------------------

CUresult Front::Allocate(Device* device, std::size_t bytes, std::optional<CUstream> stream,
                         CUdeviceptr* pointer) {
  HeldBlock block;
  block.bytes = bytes;
  block.device = device;
  const CUresult result = device->Allocate(bytes, stream, &block.address);
  if (result != kSuccess) return result;
  try {
    blocks_.Add(block);
  } catch (const std::bad_alloc&) {
    device->Free(block.address, stream);
    return kOutOfMemory;
  }
  *pointer = block.address;
  return kSuccess;
}

std::optional<CUresult> Front::Free(CUdeviceptr pointer, std::optional<CUstream> stream) {
  const std::optional<HeldBlock> block = blocks_.Take(pointer);
  if (!block.has_value()) return std::nullopt;
  const CUresult result = block->device->Free(pointer, stream);
  if (result != kSuccess) blocks_.Add(*block);  // still held
  return result;
}

}  // namespace thimble::xla
