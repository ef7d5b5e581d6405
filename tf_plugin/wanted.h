// Tells whether the user asked for Thimble.
#pragma once

#include <cstring>

namespace thimble::tf {

// True if `conf`, written like THIMBLE_CONF, has the entry device:cpu. The core's parser defines
// the grammar, but load.cc must know this before it loads the core: it asks in every process that
// imports TensorFlow, and a process that did not ask for Thimble must load nothing.
inline bool NamesCpu(const char* conf) {
  constexpr char kSpace[] = " \t";
  const auto take = [&](const char* word) {
    conf += std::strspn(conf, kSpace);
    if (std::strncmp(conf, word, std::strlen(word)) != 0) return false;
    conf += std::strlen(word);
    return true;
  };
  while (true) {
    if (take("device") && take(":") && take("cpu")) {
      conf += std::strspn(conf, kSpace);
      if (*conf == ',' || *conf == '\0') return true;
    }
    conf = std::strchr(conf, ',');
    if (conf == nullptr) return false;
    ++conf;
  }
}

inline bool IsThimble(const char* gpu_allocator) {
  return gpu_allocator != nullptr && std::strcmp(gpu_allocator, "thimble") == 0;
}

// The values of TF_GPU_ALLOCATOR and THIMBLE_CONF; null if unset.
inline bool IsWanted(const char* gpu_allocator, const char* conf) {
  return IsThimble(gpu_allocator) || (conf != nullptr && NamesCpu(conf));
}

}  // namespace thimble::tf
