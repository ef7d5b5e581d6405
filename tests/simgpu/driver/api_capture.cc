// The capture of streams into graphs, and what graphs have that makes no difference here.
#include <utility>

#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/simulator.h"

using simgpu::Call;
using simgpu::Graph;
using simgpu::Simulator;

namespace {

CUresult BeginCapture(const char* name, CUstream handle, CUgraph graph_handle) {
  Call call(name, {{"stream", handle}, {"graph", graph_handle}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const std::shared_ptr<Graph> graph = Simulator::Get().graphs.Find(graph_handle);
  if (graph == nullptr) return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph is not alive");
  const auto stream = Simulator::Get().FindStream(handle);
  if (stream == nullptr) return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the stream is not alive");
  if (stream->capture() != nullptr) {
    return call.Refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream captures already");
  }
  stream->SetCapture(graph);
  graph->Join(stream);
  return call.result();
}

CUresult CaptureStatus(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                       CUgraph* graph) {
  if (!call.ok()) return call.result();
  const auto stream = Simulator::Get().FindStream(handle);
  if (stream == nullptr) return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the stream is not alive");
  const std::shared_ptr<Graph> capture = stream->capture();
  *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture == nullptr) return call.result();
  if (id != nullptr) *id = reinterpret_cast<std::uintptr_t>(capture->handle);
  if (graph != nullptr) *graph = capture->handle;
  return call.result();
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return BeginCapture("cuStreamBeginCapture", stream, simgpu::NewGraph());
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode*,
                                     const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode) {
  return BeginCapture("cuStreamBeginCaptureToGraph", stream, graph);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  Call call("cuStreamEndCapture", {{"stream", handle}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const auto stream = Simulator::Get().FindStream(handle);
  const std::shared_ptr<Graph> capture = stream == nullptr ? nullptr : stream->capture();
  if (capture == nullptr) {
    return call.Refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream does not capture");
  }
  capture->EndCapture();
  *graph = capture->handle;
  return call.result();
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  Call call("cuStreamIsCapturing", {{"stream", stream}}, Call::Needs::kContext);
  return CaptureStatus(call, stream, status, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   std::size_t* count) {
  Call call("cuStreamGetCaptureInfo", {{"stream", stream}}, Call::Needs::kContext);
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return CaptureStatus(call, stream, status, id, graph);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  Call call("cuThreadExchangeStreamCaptureMode");
  if (!call.ok()) return call.result();
  thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(current, *mode);
  return call.result();
}

// Graphs that allocate are not simulated: there is nothing to trim.
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  Call call("cuDeviceGraphMemTrim", {{"device", device}});
  return call.result();
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  Call call("cuDeviceGetGraphMemAttribute", {{"device", device}, {"attribute", attribute}});
  if (!call.ok()) return call.result();
  *static_cast<cuuint64_t*>(value) = 0;
  return call.result();
}

// Hints for kernels that do not run.
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  Call call("cuGraphKernelNodeCopyAttributes", {{"to", to}, {"from", from}});
  return call.result();
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue*) {
  Call call("cuGraphKernelNodeSetAttribute", {{"node", node}, {"attribute", attribute}});
  return call.result();
}

}  // extern "C"
