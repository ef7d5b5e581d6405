#include "tests/simgpu/driver/contexts.h"

#include <array>

namespace simgpu {
namespace {

// Plain data: calls at the end of a thread, after its destructors have run, still find it.
struct Stack {
  std::array<CUcontext, 64> contexts;
  int depth;
};
thread_local Stack stack = {};

}  // namespace

Contexts::Contexts(const Options& options) : primaries_(static_cast<std::size_t>(options.gpus)) {}

CUcontext Contexts::Create(int device) {
  auto context = std::make_shared<Context>();
  context->device = device;
  context->default_stream = std::make_shared<Stream>(device);
  const CUcontext handle = contexts_.Add(context);
  context->handle = handle;
  return handle;
}

bool Contexts::Destroy(CUcontext handle) {
  const std::shared_ptr<Context> context = contexts_.Find(handle);
  if (context == nullptr || context->is_primary) return false;
  contexts_.Remove(handle);
  return true;
}

CUcontext Contexts::Retain(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  Primary& primary = primaries_[static_cast<std::size_t>(device)];
  if (primary.retained++ == 0) {
    primary.handle = Create(device);
    contexts_.Find(primary.handle)->is_primary = true;
  }
  return primary.handle;
}

bool Contexts::Release(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  Primary& primary = primaries_[static_cast<std::size_t>(device)];
  if (primary.retained == 0) return false;
  if (--primary.retained == 0) {
    contexts_.Remove(primary.handle);
    primary.handle = nullptr;
  }
  return true;
}

void Contexts::Reset(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  Primary& primary = primaries_[static_cast<std::size_t>(device)];
  if (primary.retained > 0) contexts_.Remove(primary.handle);
  primary = Primary();
}

CUcontext Contexts::PrimaryOf(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return primaries_[static_cast<std::size_t>(device)].handle;
}

int Contexts::retained(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return primaries_[static_cast<std::size_t>(device)].retained;
}

unsigned Contexts::flags(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return primaries_[static_cast<std::size_t>(device)].flags;
}

void Contexts::SetFlags(int device, unsigned flags) {
  std::lock_guard<std::mutex> lock(mutex_);
  primaries_[static_cast<std::size_t>(device)].flags = flags;
}

int Contexts::LiveRetains() {
  std::lock_guard<std::mutex> lock(mutex_);
  int sum = 0;
  for (const Primary& primary : primaries_) sum += primary.retained;
  return sum;
}

CUcontext Contexts::CurrentHandle() const {
  return stack.depth == 0 ? nullptr : stack.contexts[static_cast<std::size_t>(stack.depth - 1)];
}

std::shared_ptr<Context> Contexts::Current() const { return contexts_.Find(CurrentHandle()); }

bool Contexts::Push(CUcontext handle) {
  if (stack.depth == static_cast<int>(stack.contexts.size())) return false;
  stack.contexts[static_cast<std::size_t>(stack.depth++)] = handle;
  return true;
}

bool Contexts::Pop(CUcontext* handle) {
  if (stack.depth == 0) return false;
  *handle = stack.contexts[static_cast<std::size_t>(--stack.depth)];
  return true;
}

void Contexts::SetCurrent(CUcontext handle) {
  if (stack.depth > 0) --stack.depth;
  if (handle != nullptr) Push(handle);
}

}  // namespace simgpu
