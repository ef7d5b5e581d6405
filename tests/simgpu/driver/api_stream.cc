// Streams, events, host functions and numbers in memory that streams wait for.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/simulator.h"
#include "tests/simgpu/driver/transfer.h"

#undef cuEventElapsedTime

using simgpu::Call;
using simgpu::Event;
using simgpu::Graph;
using simgpu::Outcome;
using simgpu::Simulator;
using simgpu::Stream;
using simgpu::Success;
using simgpu::Work;

namespace {

CUresult CreateStream(Call& call, CUstream* handle) {
  if (!call.ok()) return call.result();
  Simulator& simulator = Simulator::Get();
  *handle = simulator.streams.Add(std::make_shared<Stream>(simulator.contexts.Current()->device));
  return call.result();
}

// A live stream, or null after the call was refused.
std::shared_ptr<Stream> FindStream(Call& call, CUstream handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Stream> stream = Simulator::Get().FindStream(handle);
  if (stream == nullptr) call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the stream is not alive");
  return stream;
}

std::shared_ptr<Event> FindEvent(Call& call, CUevent handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Event> event = Simulator::Get().events.Find(handle);
  if (event == nullptr) call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the event is not alive");
  return event;
}

CUresult Record(const char* name, CUevent handle, CUstream stream_handle) {
  Call call(name, {{"event", handle}, {"stream", stream_handle}}, Call::Needs::kContext);
  const std::shared_ptr<Stream> stream = FindStream(call, stream_handle);
  const std::shared_ptr<Event> event = stream == nullptr ? nullptr : FindEvent(call, handle);
  if (event == nullptr) return call.result();
  if (event->device != stream->device()) {
    return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "event and stream are of different devices");
  }
  event->capture = stream->capture();
  if (event->capture == nullptr) event->point = stream->Record();
  return call.result();
}

CUresult Launch(const char* name, CUstream stream, std::function<void()> function) {
  Call call(name, {{"stream", stream}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_HOST;
  work.name = name;
  work.on_host = true;
  work.run = [function = std::move(function)] {
    function();
    return Success();
  };
  return call.Return(Simulator::Get().Start(stream, work));
}

CUresult WriteValue(const char* name, CUstream stream, CUdeviceptr address, simgpu::Bytes bytes,
                    std::uint64_t value) {
  Call call(name, {{"stream", stream}, {"pointer", address}, {"value", value}},
            Call::ContextUnless(stream));
  if (!call.ok()) return call.result();
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  work.name = name;
  work.run = [=] { return simgpu::WriteNumber(address, bytes, value); };
  return call.Return(Simulator::Get().Start(stream, work));
}

bool IsReached(std::uint64_t is, std::uint64_t wanted, unsigned flags) {
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int64_t>(is - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return is == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (is & wanted) != 0;
    default:
      return ~(is | wanted) != 0;
  }
}

// The stream's thread polls the number, because the host may change it at any time.
CUresult WaitValue(const char* name, CUstream stream, CUdeviceptr address, simgpu::Bytes bytes,
                   std::uint64_t value, unsigned flags) {
  Call call(name, {{"stream", stream}, {"pointer", address}, {"value", value}, {"flags", flags}},
            Call::ContextUnless(stream));
  if (!call.ok()) return call.result();
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  work.name = name;
  work.on_host = true;
  work.run = [=] {
    while (true) {
      std::uint64_t number = 0;
      const Outcome outcome = simgpu::ReadNumber(address, bytes, &number);
      if (!outcome.ok() || IsReached(number, value, flags)) return outcome;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  return call.Return(Simulator::Get().Start(stream, work));
}

CUresult ElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Call call("cuEventElapsedTime", {{"start", start}, {"end", end}});
  const std::shared_ptr<Event> first = FindEvent(call, start);
  const std::shared_ptr<Event> last = first == nullptr ? nullptr : FindEvent(call, end);
  if (last == nullptr) return call.result();
  if (first->point == nullptr || last->point == nullptr || !first->has_timing ||
      !last->has_timing) {
    return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "an event was not recorded, or has no timing");
  }
  if (!HasPassed(first->point) || !HasPassed(last->point)) {
    return call.Return(CUDA_ERROR_NOT_READY);
  }
  const auto time = static_cast<float>(last->point->when - first->point->when) / 1e6f;
  *milliseconds = std::max(time, 0.001f);  // programs divide by it
  return call.result();
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  Call call("cuStreamCreate", {{"flags", flags}}, Call::Needs::kContext);
  return CreateStream(call, stream);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  Call call("cuStreamCreateWithPriority",
            {{"flags", flags}, {"urgency", -static_cast<long>(priority)}}, Call::Needs::kContext);
  return CreateStream(call, stream);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Call call("cuStreamDestroy", {{"stream", stream}});
  if (!call.ok()) return call.result();
  if (Simulator::Get().streams.Remove(stream) == nullptr) {
    return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the stream is not alive");
  }
  return call.result();  // what is queued still runs
}

CUresult cuStreamSynchronize(CUstream handle) {
  Call call("cuStreamSynchronize", {{"stream", handle}}, Call::ContextUnless(handle));
  const std::shared_ptr<Stream> stream = FindStream(call, handle);
  if (stream == nullptr) return call.result();
  const Outcome outcome = stream->Synchronize();
  if (outcome.ok()) Simulator::Get().pools.Waited(stream->device());
  return call.Return(outcome);
}

CUresult cuStreamQuery(CUstream handle) {
  Call call("cuStreamQuery", {{"stream", handle}}, Call::ContextUnless(handle));
  const std::shared_ptr<Stream> stream = FindStream(call, handle);
  if (stream == nullptr) return call.result();
  return call.Return(stream->IsIdle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int flags) {
  Call call("cuStreamWaitEvent",
            {{"stream", stream_handle}, {"event", event_handle}, {"flags", flags}});
  const std::shared_ptr<Stream> stream = FindStream(call, stream_handle);
  const std::shared_ptr<Event> event = stream == nullptr ? nullptr : FindEvent(call, event_handle);
  if (event == nullptr) return call.result();
  // A stream that waits for work that is being captured is captured with it.
  if (event->capture != nullptr) {
    stream->SetCapture(event->capture);
    event->capture->Join(stream);
  } else if (stream->capture() == nullptr) {
    stream->WaitFor(event->point);
  }
  return call.result();
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  Call call("cuStreamGetPriority", {{"stream", stream}});
  if (FindStream(call, stream) == nullptr) return call.result();
  *priority = 0;
  return call.result();
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  Call call("cuStreamGetFlags", {{"stream", stream}});
  if (FindStream(call, stream) == nullptr) return call.result();
  *flags = CU_STREAM_NON_BLOCKING;
  return call.result();
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  Call call("cuStreamGetCtx", {{"stream", stream}});
  const std::shared_ptr<Stream> found = FindStream(call, stream);
  if (found == nullptr) return call.result();
  *context = Simulator::Get().contexts.PrimaryOf(found->device());
  return call.result();
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  Call call("cuStreamGetDevice", {{"stream", stream}});
  const std::shared_ptr<Stream> found = FindStream(call, stream);
  if (found == nullptr) return call.result();
  *device = found->device();
  return call.result();
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  Call call("cuStreamGetId", {{"stream", stream}});
  if (FindStream(call, stream) == nullptr) return call.result();
  *id = reinterpret_cast<std::uintptr_t>(stream);
  return call.result();
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned int /*flags*/) {
  return Launch("cuStreamAddCallback", stream, [=] { callback(stream, CUDA_SUCCESS, data); });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return Launch("cuLaunchHostFunc", stream, [=] { function(data); });
}

CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn function, void* data,
                             unsigned int /*synchronization*/) {
  return Launch("cuLaunchHostFunc", stream, [=] { function(data); });
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int /*flags*/) {
  return WriteValue("cuStreamWriteValue32", stream, address, 4, value);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int /*flags*/) {
  return WriteValue("cuStreamWriteValue64", stream, address, 8, value);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags) {
  return WaitValue("cuStreamWaitValue32", stream, address, 4, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags) {
  return WaitValue("cuStreamWaitValue64", stream, address, 8, value, flags);
}

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  Call call("cuEventCreate", {{"flags", flags}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  auto event = std::make_shared<Event>();
  event->device = Simulator::Get().contexts.Current()->device;
  event->has_timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *handle = Simulator::Get().events.Add(std::move(event));
  return call.result();
}

CUresult cuEventDestroy_v2(CUevent event) {
  Call call("cuEventDestroy", {{"event", event}});
  if (!call.ok()) return call.result();
  if (Simulator::Get().events.Remove(event) == nullptr) {
    return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the event is not alive");
  }
  return call.result();
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return Record("cuEventRecord", event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int /*flags*/) {
  return Record("cuEventRecordWithFlags", event, stream);
}

CUresult cuEventQuery(CUevent handle) {
  Call call("cuEventQuery", {{"event", handle}});
  const std::shared_ptr<Event> event = FindEvent(call, handle);
  if (event == nullptr) return call.result();
  return call.Return(HasPassed(event->point) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent handle) {
  Call call("cuEventSynchronize", {{"event", handle}});
  const std::shared_ptr<Event> event = FindEvent(call, handle);
  if (event == nullptr) return call.result();
  const Outcome outcome = simgpu::Await(event->point);
  if (outcome.ok()) Simulator::Get().pools.Waited(event->device);
  return call.Return(outcome);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return ElapsedTime(milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return ElapsedTime(milliseconds, start, end);
}

}  // extern "C"
