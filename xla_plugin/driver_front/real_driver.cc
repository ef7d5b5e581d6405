#include "xla_plugin/driver_front/real_driver.h"

#include <dlfcn.h>

#include <algorithm>

// Defined in forwards.S, which make_forwards.py writes.
extern "C" {
extern void* forward_table[];
extern const char* const forward_names[];
extern const std::size_t forward_count;
}

namespace thimble::xla {
namespace {

// Replaces a function that cannot be called.
template <CUresult kAnswer, typename... Arguments>
CUresult Answer(Arguments...) {
  return kAnswer;
}

template <typename... Arguments>
void SetNotOpened(CUresult (**function)(Arguments...)) {
  *function = Answer<kNotInitialized, Arguments...>;
}

template <typename... Arguments>
void Find(void* library, const char* name, CUresult (**function)(Arguments...)) {
  *function = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(library, name));
  if (*function == nullptr) *function = Answer<kNotSupported, Arguments...>;
}

RealDriver& MutableReal() {
  static RealDriver real = [] {
    RealDriver none;
#define THIMBLE_NOT_OPENED(name, arguments) SetNotOpened(&none.name);
    THIMBLE_REAL_FUNCTIONS(THIMBLE_NOT_OPENED)
#undef THIMBLE_NOT_OPENED
    return none;
  }();
  return real;
}

// Forwards can be called as soon as the front is loaded.
[[gnu::constructor]] void FillForwards() {
  std::fill_n(forward_table, forward_count, reinterpret_cast<void*>(Answer<kNotInitialized>));
}

}  // namespace

const RealDriver& Real() { return MutableReal(); }

std::string OpenRealDriver(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  if (dlsym(library, "thimble_front_open") != nullptr) {
    return path + " is Thimble's own front: the path of the CUDA driver is needed";
  }
  for (std::size_t i = 0; i < forward_count; ++i) {
    CUresult (*function)() = nullptr;  // with any arguments: a forward does not touch them
    Find(library, forward_names[i], &function);
    forward_table[i] = reinterpret_cast<void*>(function);
  }
  RealDriver& real = MutableReal();
#define THIMBLE_FIND(name, arguments) Find(library, #name, &real.name);
  THIMBLE_REAL_FUNCTIONS(THIMBLE_FIND)
#undef THIMBLE_FIND
  return "";
}

}  // namespace thimble::xla
