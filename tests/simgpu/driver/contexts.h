// Contexts, and which one is current on each thread.
//
// A context is only a name for a device here: two contexts of a device share its memory, and
// destroying one frees nothing.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cuda.h"
#include "tests/simgpu/driver/handles.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

struct Context {
  CUcontext handle = nullptr;
  int device = 0;
  bool is_primary = false;
  std::shared_ptr<Stream> default_stream;
};

class Contexts {
 public:
  explicit Contexts(const Options& options);

  // The primary context of a device lives while it is retained.
  CUcontext Retain(int device);
  bool Release(int device);  // false if nobody retains it
  void Reset(int device);
  CUcontext PrimaryOf(int device);  // null while nobody retains it
  int retained(int device);
  unsigned flags(int device);
  void SetFlags(int device, unsigned flags);

  CUcontext Create(int device);
  bool Destroy(CUcontext handle);

  // Null if it is not alive.
  std::shared_ptr<Context> Find(CUcontext handle) const { return contexts_.Find(handle); }

  // The stack of this thread.
  std::shared_ptr<Context> Current() const;
  CUcontext CurrentHandle() const;
  bool Push(CUcontext handle);
  bool Pop(CUcontext* handle);
  void SetCurrent(CUcontext handle);

  int LiveRetains();

 private:
  struct Primary {
    CUcontext handle = nullptr;
    int retained = 0;
    unsigned flags = 0;
  };

  std::mutex mutex_;
  std::vector<Primary> primaries_;
  HandleTable<CUcontext, Context> contexts_;
};

}  // namespace simgpu
