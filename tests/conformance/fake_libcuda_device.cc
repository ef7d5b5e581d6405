// The fake libcuda, part 1: devices, contexts, errors and the controls.
#include <unistd.h>

#include <cstring>

#include "tests/conformance/fake_libcuda_state.h"

namespace thimble {
namespace fake_cuda {
namespace {

constexpr FakeCudaControls kDefaults = {
    /*init_result=*/CUDA_SUCCESS,
    /*device_count=*/2,
    /*vmm_supported=*/1,
    /*descriptors_supported=*/1,
    /*peers_reachable=*/1,
    /*deinitialized=*/0,
    /*fail_call=*/-1,
    /*fail_result=*/CUDA_ERROR_OUT_OF_MEMORY,
    /*granularity=*/2 * kMiB,
    /*total_bytes=*/1 * kGiB,
    /*log=*/nullptr,
};

// The contexts that are current on this thread, innermost last.
thread_local std::vector<CUcontext> context_stack;

bool IsDevice(CUdevice device) {
  return device >= 0 && device < GetState().controls.device_count && device < kMaxDevices;
}

}  // namespace

State::State() : controls(kDefaults) {
  for (int i = 0; i < kMaxDevices; ++i) devices[i].context.device = i;
}

State& GetState() {
  static State* const state = new State;  // outlives whoever calls at exit
  return *state;
}

CUresult Enter(const std::string& line) {
  State& state = GetState();
  if (state.controls.log != nullptr) state.controls.log(line.c_str());
  if (state.controls.deinitialized != 0) return CUDA_ERROR_DEINITIALIZED;
  if (state.controls.fail_call >= 0 && state.controls.fail_call-- == 0) {
    return state.controls.fail_result;
  }
  return state.initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

Device* CurrentDevice() {
  return context_stack.empty() ? nullptr : &GetState().devices[context_stack.back()->device];
}

CUresult ToResult(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CUDA_SUCCESS;
    case absl::StatusCode::kResourceExhausted:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case absl::StatusCode::kInvalidArgument:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace fake_cuda
}  // namespace thimble

using thimble::fake_cuda::Device;
using thimble::fake_cuda::GetState;
using thimble::fake_cuda::IsDevice;

extern "C" {

void fake_cuda_reset(void) {
  thimble::fake_cuda::State& state = GetState();
  for (Device& device : state.devices) {
    for (const thimble::fake_cuda::Exported& one : device.exports) close(one.read_end);
    device.exports.clear();
    device.shareable.clear();
    device.memory.reset();
    device.retained = 0;
  }
  thimble::fake_cuda::ResetStreams();
  state.controls = thimble::fake_cuda::kDefaults;
  state.initialized = false;
}

FakeCudaControls* fake_cuda_controls(void) { return &GetState().controls; }

FakeCudaCounts fake_cuda_counts(void) {
  FakeCudaCounts counts = {thimble::fake_cuda::LiveEvents(), 0};
  for (const Device& device : GetState().devices) counts.retained_contexts += device.retained;
  return counts;
}

CUresult cuInit(unsigned int flags) {
  thimble::fake_cuda::State& state = GetState();
  if (state.controls.log != nullptr) state.controls.log(absl::StrCat("cuInit ", flags).c_str());
  if (state.controls.init_result != CUDA_SUCCESS) return state.controls.init_result;
  state.initialized = true;
  return state.controls.device_count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

// Not logged: it says something about a result and changes nothing.
CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define FAKE_CUDA_NAME(code) \
  case code:                 \
    *name = #code;           \
    return CUDA_SUCCESS
    FAKE_CUDA_NAME(CUDA_SUCCESS);
    FAKE_CUDA_NAME(CUDA_ERROR_INVALID_VALUE);
    FAKE_CUDA_NAME(CUDA_ERROR_OUT_OF_MEMORY);
    FAKE_CUDA_NAME(CUDA_ERROR_NOT_INITIALIZED);
    FAKE_CUDA_NAME(CUDA_ERROR_DEINITIALIZED);
    FAKE_CUDA_NAME(CUDA_ERROR_NO_DEVICE);
    FAKE_CUDA_NAME(CUDA_ERROR_INVALID_DEVICE);
    FAKE_CUDA_NAME(CUDA_ERROR_INVALID_CONTEXT);
    FAKE_CUDA_NAME(CUDA_ERROR_INVALID_HANDLE);
    FAKE_CUDA_NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
    FAKE_CUDA_NAME(CUDA_ERROR_ILLEGAL_ADDRESS);
    FAKE_CUDA_NAME(CUDA_ERROR_NOT_SUPPORTED);
    FAKE_CUDA_NAME(CUDA_ERROR_ECC_UNCORRECTABLE);
#undef FAKE_CUDA_NAME
    default:
      *name = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_CUDA_ENTER("cuDeviceGetCount");
  *count = GetState().controls.device_count;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_CUDA_ENTER("cuDeviceGet ", ordinal);
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  FAKE_CUDA_ENTER("cuDeviceGetName ", device);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE_CUDA_ENTER("cuDeviceGetAttribute ", static_cast<int>(attribute), " ", device);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = GetState().controls.vmm_supported;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      *value = GetState().controls.descriptors_supported;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  FAKE_CUDA_ENTER("cuDeviceTotalMem ", device);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = GetState().controls.total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  FAKE_CUDA_ENTER("cuDeviceCanAccessPeer ", device, " ", peer);
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can_access = device != peer ? GetState().controls.peers_reachable : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_CUDA_ENTER("cuDevicePrimaryCtxRetain ", device);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device& chosen = GetState().devices[device];
  if (chosen.memory == nullptr) {
    thimble::HostOptions options;
    options.granularity = GetState().controls.granularity;
    options.total_bytes = GetState().controls.total_bytes;
    auto memory = thimble::HostDriver::Open(options);
    if (!memory.ok()) return thimble::fake_cuda::ToResult(memory.status());
    chosen.memory = *std::move(memory);
  }
  ++chosen.retained;
  *context = &chosen.context;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_CUDA_ENTER("cuDevicePrimaryCtxRelease ", device);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device& chosen = GetState().devices[device];
  if (chosen.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --chosen.retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_CUDA_ENTER("cuCtxPushCurrent ", context->device);
  if (GetState().devices[context->device].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  thimble::fake_cuda::context_stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKE_CUDA_ENTER("cuCtxPopCurrent");
  auto& stack = thimble::fake_cuda::context_stack;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_CUDA_ENTER("cuCtxGetCurrent");
  const auto& stack = thimble::fake_cuda::context_stack;
  *context = stack.empty() ? nullptr : stack.back();
  return CUDA_SUCCESS;
}

}  // extern "C"
