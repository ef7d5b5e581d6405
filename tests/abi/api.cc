#include "tests/abi/api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

template <typename Function>
void Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function != nullptr) return;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(3);
}

}  // namespace

Api Api::Open() {
  Api api;
  api.library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (api.library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
  Find(api.library, "thimble_last_error", &api.last_error);
  Find(api.library, "thimble_create", &api.create);
  Find(api.library, "thimble_destroy", &api.destroy);
  Find(api.library, "thimble_allocate", &api.allocate);
  Find(api.library, "thimble_free", &api.free);
  Find(api.library, "thimble_pin", &api.pin);
  Find(api.library, "thimble_unpin", &api.unpin);
  Find(api.library, "thimble_get_stats", &api.get_stats);
  Find(api.library, "thimble_trim", &api.trim);
  return api;
}

void Api::Close() {
  if (dlclose(library) != 0) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
}
