// libthimble_tf.so: the library that TensorFlow finds and loads, wanted or not.
//
// It must change nothing for users who did not ask for Thimble, and must not break other versions
// of TensorFlow: the hooks are C++ classes for one exact version, and a missing symbol would end
// `import tensorflow`. So this library is small and uses no class of TensorFlow. It checks two
// variables and the version, and only then opens the hooks.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tf_plugin/tf_plugin.h"
#include "tf_plugin/wanted.h"

// Tests build this file for a version that is not installed.
#ifndef THIMBLE_TF_VERSION
#include "wheel_version.h"
#define THIMBLE_TF_VERSION TENSORFLOW_WHEEL_VERSION
#endif

namespace {

constexpr char kHooks[] = "libthimble_tf_hooks.so";
constexpr char kStays[] = "TensorFlow uses its own allocator.";

decltype(&thimble_tf_hooked_arena) hooked_arena = nullptr;

// Writes to stderr, because this library cannot use TensorFlow's log. Each warning is written at
// most once.
void Warn(const char* what, const char* detail) {
  std::fprintf(stderr, "thimble: %s%s. %s\n", what, detail, kStays);
}

// "" if no TensorFlow is loaded.
const char* LoadedVersion() {
  void* const library = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "TF_Version"));
  return version == nullptr ? "" : version();
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

__attribute__((constructor)) void Load() {
  if (!thimble::tf::IsWanted(std::getenv("TF_GPU_ALLOCATOR"), std::getenv("THIMBLE_CONF"))) return;
  const char* const version = LoadedVersion();
  if (std::strcmp(version, THIMBLE_TF_VERSION) != 0) {
    Warn("this copy is for TensorFlow " THIMBLE_TF_VERSION ", but loaded is ",
         *version == '\0' ? "none that says its version" : version);
    return;
  }
  void* const hooks = dlopen(kHooks, RTLD_NOW | RTLD_LOCAL);
  decltype(&thimble_tf_install) install = nullptr;
  if (hooks == nullptr || !Find(hooks, "thimble_tf_install", &install) ||
      !Find(hooks, "thimble_tf_hooked_arena", &hooked_arena)) {
    const char* const error = dlerror();
    Warn("the installation is not complete: ", error == nullptr ? kHooks : error);
    return;
  }
  install();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) thimble_arena* thimble_tf_arena(int device) {
  return hooked_arena == nullptr ? nullptr : hooked_arena(device);
}
