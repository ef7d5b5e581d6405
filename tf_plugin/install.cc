// libthimble_tf_hooks.so: puts Thimble where TensorFlow looks for an allocator or a CPU device.
#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include "absl/log/log.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/process_state.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/cpu_device.h"
#include "tf_plugin/gpu_device.h"
#include "tf_plugin/process_state.h"
#include "tf_plugin/settings.h"
#include "tf_plugin/tf_plugin.h"
#include "tf_plugin/wanted.h"

namespace thimble::tf {
namespace {

// Compares names, because another copy of this library has another class.
template <typename Ours, typename Base>
bool IsOfAnotherCopy(const Base& object) {
  return std::string(typeid(object).name()) == typeid(Ours).name();
}

void WarnTwoCopies() {
  LOG(WARNING) << "Thimble is installed twice; the first copy is used. Remove one libthimble_tf.so "
                  "(see tensorflow-plugins and TF_PLUGGABLE_DEVICE_LIBRARY_PATH).";
}

void WarnTooLate() {
  LOG(WARNING)
      << "Thimble was loaded after TensorFlow's first operation, so TensorFlow uses its own "
         "allocator. Load Thimble earlier, or install it so that `import tensorflow` loads it.";
}

// Whether TensorFlow has handed out CPU memory; creating a device does that.
struct CpuMemoryUse : tensorflow::ProcessState {
  static bool Began() { return (singleton()->*(&CpuMemoryUse::cpu_allocators_cached_)).load() > 0; }
};

void InstallCpu(absl::StatusOr<Settings> settings) {
  const tensorflow::DeviceFactory* const present = tensorflow::DeviceFactory::GetFactory("CPU");
  if (present != nullptr && IsOfAnotherCopy<CpuDeviceFactory>(*present)) return WarnTwoCopies();
  if (CpuMemoryUse::Began()) return WarnTooLate();
  tensorflow::DeviceFactory::Register("CPU",
                                      std::make_unique<CpuDeviceFactory>(std::move(settings)),
                                      CpuDeviceFactory::kPriority, /*is_pluggable_device=*/false);
}

void InstallGpu(absl::StatusOr<Settings> settings) {
  const bool swap = settings.ok() && settings->swap;
  auto* const ours = new ProcessState(std::move(settings));  // TensorFlow never deletes it
  const tensorflow::GPUProcessState* const installed = tensorflow::GPUProcessState::singleton(ours);
  if (installed == ours) return RegisterGpus(swap);
  if (IsOfAnotherCopy<ProcessState>(*installed)) {
    WarnTwoCopies();
  } else {
    WarnTooLate();
  }
}

void Install() {
  const char* const conf = std::getenv("THIMBLE_CONF");
  const bool cpu = conf != nullptr && NamesCpu(conf);
  absl::StatusOr<Settings> settings = ParseSettings(conf == nullptr ? "" : conf);
  if (!cpu) return InstallGpu(std::move(settings));
  if (settings.ok() && IsThimble(std::getenv("TF_GPU_ALLOCATOR"))) {
    settings = absl::InvalidArgumentError(
        "device:cpu and TF_GPU_ALLOCATOR=thimble contradict each other: leave out one of them");
  }
  InstallCpu(std::move(settings));
}

}  // namespace
}  // namespace thimble::tf

extern "C" {

__attribute__((visibility("default"))) void thimble_tf_install(void) { thimble::tf::Install(); }

__attribute__((visibility("default"))) thimble_arena* thimble_tf_hooked_arena(int device) {
  return thimble::tf::FindArena(device);
}

}  // extern "C"
