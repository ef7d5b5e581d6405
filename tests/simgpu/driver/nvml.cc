// libnvidia-ml.so.1: the machine as a monitoring tool sees it. Types are those of nvml.h, which no
// wheel here contains. Only the queries of TensorFlow and JAX at their start, and those about
// NVLinks, are answered.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simgpu/driver/control.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/stub.h"

namespace {

enum nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
};

using nvmlDevice_t = void*;

struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  char busId[32];
};

struct nvmlFieldValue_t {
  unsigned fieldId;
  unsigned scopeId;
  long long timestamp;
  long long latencyUsec;
  unsigned valueType;
  unsigned nvmlReturn;
  unsigned long long value;
};

constexpr unsigned kNvlinkSpeed = 164;           // NVML_FI_DEV_NVLINK_GET_SPEED
constexpr unsigned kMegabytesPerSecond = 25000;  // of an A100's link, each way

constexpr int kFirstBus = 4;  // as libcuda.so.1 numbers them

const simgpu::Options& GetOptions() {
  static const auto* const options = [] {
    auto* const read = new simgpu::Options;
    const char* const conf = std::getenv("SIMGPU_CONF");
    std::string error;
    // cuInit reports errors in it.
    if (!simgpu::ParseOptions(conf == nullptr ? "" : conf, read, &error)) *read = {};
    return read;
  }();
  return *options;
}

// Handles are ordinals plus one, so that none is null.
nvmlDevice_t HandleOf(int device) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::intptr_t>(device) + 1);
}
int DeviceOf(nvmlDevice_t handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1;
}
bool IsDevice(int device) { return device >= 0 && device < GetOptions().gpus; }

// GPUs are joined in pairs.
int OtherEnd(int device) { return device ^ 1; }
bool HasNvlink(int device, unsigned link) {
  return IsDevice(device) && IsDevice(OtherEnd(device)) &&
         link < static_cast<unsigned>(GetOptions().nvlinks);
}

nvmlReturn_t Give(const std::string& text, char* to, unsigned length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::strcpy(to, text.c_str());
  return NVML_SUCCESS;
}

// What this process has taken; a process without libcuda.so.1 has taken nothing.
unsigned long long TakenBytes(int device) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  const auto get =
      reinterpret_cast<decltype(&simgpu_get_memory)>(dlsym(driver, "simgpu_get_memory"));
  simgpu_memory memory = {};
  if (get != nullptr) get(device, &memory);
  dlclose(driver);
  return memory.taken;
}

}  // namespace

int simgpu::NotSimulated(const char* /*name*/) { return NVML_ERROR_NOT_SUPPORTED; }

extern "C" {

int nvmlInit(void) { return NVML_SUCCESS; }
int nvmlInit_v2(void) { return NVML_SUCCESS; }
int nvmlInitWithFlags(unsigned int /*flags*/) { return NVML_SUCCESS; }
int nvmlShutdown(void) { return NVML_SUCCESS; }

const char* nvmlErrorString(int result) {
  return result == NVML_SUCCESS ? "Success" : "Not simulated";
}

int nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return Give("575.57.08", version, length);  // the one that came with CUDA 12.9
}

int nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return Give("12.575.57.08", version, length);
}

int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 12090;
  return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = static_cast<unsigned>(GetOptions().gpus);
  return NVML_SUCCESS;
}

int nvmlDeviceGetCount(unsigned int* count) { return nvmlDeviceGetCount_v2(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  const int ordinal = static_cast<int>(index);
  if (!IsDevice(ordinal)) return NVML_ERROR_INVALID_ARGUMENT;
  *device = HandleOf(ordinal);
  return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvmlDevice_t* device) {
  unsigned domain = 0;
  unsigned bus = 0;
  const bool parsed = std::sscanf(text, "%x:%x:", &domain, &bus) == 2;
  const int ordinal = static_cast<int>(bus) - kFirstBus;
  if (!parsed || !IsDevice(ordinal)) return NVML_ERROR_NOT_FOUND;
  *device = HandleOf(ordinal);
  return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId(const char* text, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  if (!IsDevice(DeviceOf(device))) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(DeviceOf(device));
  return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  if (!IsDevice(DeviceOf(device))) return NVML_ERROR_INVALID_ARGUMENT;
  return Give(GetOptions().NameOf(DeviceOf(device)), name, length);
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t /*device*/, unsigned int* generation) {
  *generation = 4;
  return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t /*device*/, unsigned int* width) {
  *width = 16;
  return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int* is_active) {
  if (!HasNvlink(DeviceOf(device), link)) return NVML_ERROR_INVALID_ARGUMENT;
  *is_active = 1;
  return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                        unsigned int* type) {
  if (!HasNvlink(DeviceOf(device), link)) return NVML_ERROR_INVALID_ARGUMENT;
  *type = 0;  // a GPU
  return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                        nvmlPciInfo_t* info) {
  if (!HasNvlink(DeviceOf(device), link)) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  info->bus = static_cast<unsigned>(kFirstBus + OtherEnd(DeviceOf(device)));
  std::snprintf(info->busId, sizeof(info->busId), "00000000:%02X:00.0", info->bus);
  return NVML_SUCCESS;
}

int nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  for (nvmlFieldValue_t* field = values; field != values + count; ++field) {
    const bool is_known =
        field->fieldId == kNvlinkSpeed && HasNvlink(DeviceOf(device), field->scopeId);
    field->nvmlReturn = is_known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    field->value = is_known ? kMegabytesPerSecond : 0;
  }
  return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (!IsDevice(DeviceOf(device))) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = GetOptions().MemoryOf(DeviceOf(device));
  memory->used = TakenBytes(DeviceOf(device));
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

}  // extern "C"
