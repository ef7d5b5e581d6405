// Graphs.
#include <algorithm>
#include <vector>

#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/module.h"
#include "tests/simgpu/driver/simulator.h"
#include "tests/simgpu/driver/transfer.h"

#undef cuGraphAddNode
#undef cuGraphNodeGetDependencies

using simgpu::Box;
using simgpu::Call;
using simgpu::Executable;
using simgpu::Extent;
using simgpu::Graph;
using simgpu::Node;
using simgpu::Outcome;
using simgpu::Simulator;
using simgpu::Work;

namespace {

using Dependencies = std::vector<CUgraphNode>;

std::shared_ptr<Graph> FindGraph(Call& call, CUgraph handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Graph> graph = Simulator::Get().graphs.Find(handle);
  if (graph == nullptr) call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph is not alive");
  return graph;
}

std::shared_ptr<Node> FindNode(Call& call, CUgraphNode handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Node> node = Simulator::Get().nodes.Find(handle);
  if (node == nullptr) call.Refuse(CUDA_ERROR_INVALID_VALUE, "the node is not alive");
  return node;
}

std::shared_ptr<Executable> FindExecutable(Call& call, CUgraphExec handle) {
  if (!call.ok()) return nullptr;
  std::shared_ptr<Executable> found = Simulator::Get().executables.Find(handle);
  if (found == nullptr) call.Refuse(CUDA_ERROR_INVALID_VALUE, "the executable graph is not alive");
  return found;
}

// The parameters of a kernel have several types with the same names.
template <typename Kernel>
Outcome Describe(const Kernel& kernel, Work* work) {
  const CUfunction function =
      kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
  const double threads = simgpu::ThreadsOf(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                                           kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ);
  return simgpu::LaunchWork("kernel of a graph",
                            {function, threads, kernel.kernelParams, kernel.extra}, work);
}

Outcome Describe(const CUDA_MEMCPY3D& copy, Work* work) {
  Box to;
  Box from;
  Extent extent;
  const Outcome outcome = simgpu::DescribeCopy(copy, &to, &from, &extent);
  if (outcome.ok()) *work = simgpu::CopyBoxWork("copy of a graph", to, from, extent);
  return outcome;
}

Outcome Describe(const CUDA_MEMSET_NODE_PARAMS& fill, Work* work) {
  *work = simgpu::FillWork("fill of a graph", {fill.dst, fill.pitch, fill.value, fill.elementSize,
                                               fill.width, fill.height});
  return simgpu::Success();
}

// The parameters of any node as those of its kind.
Outcome Describe(const CUgraphNodeParams& any, Work* work) {
  switch (any.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return Describe(any.kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return Describe(any.memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return Describe(
          CUDA_MEMSET_NODE_PARAMS{any.memset.dst, any.memset.pitch, any.memset.value,
                                  any.memset.elementSize, any.memset.width, any.memset.height},
          work);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      work->type = any.type;
      return simgpu::Success();
    default:
      return simgpu::Failure(CUDA_ERROR_NOT_SUPPORTED);
  }
}

template <typename Parameters>
CUresult AddNode(const char* name, CUgraphNode* node, CUgraph handle,
                 const CUgraphNode* dependencies, std::size_t count, const Parameters& parameters) {
  Call call(name, {{"graph", handle}, {"dependencies", count}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph == nullptr) return call.result();
  Work work;
  const Outcome outcome = Describe(parameters, &work);
  if (!outcome.ok()) return call.Return(outcome);
  *node = graph->Add(work, Dependencies(dependencies, dependencies + count));
  return call.result();
}

template <typename Parameters>
CUresult SetNode(const char* name, CUgraphExec handle, CUgraphNode node,
                 const Parameters& parameters) {
  Call call(name, {{"executable", handle}, {"node", node}});
  const std::shared_ptr<Executable> executable = FindExecutable(call, handle);
  if (executable == nullptr) return call.result();
  Work work;
  const Outcome outcome = Describe(parameters, &work);
  if (!outcome.ok()) return call.Return(outcome);
  if (executable->SetWork(node, work)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph has no such node of this kind");
}

// A child graph is copied, or becomes part of its parent, where its nodes keep their handles.
bool IsMoved([[maybe_unused]] const CUgraphNodeParams& parameters) {
#if CUDA_VERSION >= 12090
  return parameters.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
#else
  return false;
#endif
}

// A node of any kind. The bodies of a conditional come back in an array that lives as long as it.
CUresult AddAny(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                std::size_t count, CUgraphNodeParams* parameters) {
  Call call("cuGraphAddNode",
            {{"graph", handle}, {"dependencies", count}, {"type", parameters->type}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph == nullptr) return call.result();
  Work work;
  const Outcome outcome = Describe(*parameters, &work);
  if (!outcome.ok()) return call.Return(outcome);
  std::vector<CUgraph> bodies;
  if (work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    const std::shared_ptr<Graph> child = FindGraph(call, parameters->graph.graph);
    if (child == nullptr) return call.result();
    bodies.push_back(IsMoved(*parameters) ? child->handle : simgpu::CloneGraph(*child));
  } else if (work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    bodies.resize(parameters->conditional.size);
    std::generate(bodies.begin(), bodies.end(), simgpu::NewGraph);
  }
  *node = graph->Add(work, Dependencies(dependencies, dependencies + count), std::move(bodies));
  if (work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    parameters->conditional.phGraph_out = Simulator::Get().nodes.Find(*node)->bodies.data();
  }
  return call.result();
}

// Returns the count of all, and writes as many as there is room for.
CUresult GiveNodes(Call& call, const Dependencies& all, CUgraphNode* nodes, std::size_t* count) {
  if (nodes != nullptr) std::copy_n(all.begin(), std::min(*count, all.size()), nodes);
  *count = all.size();
  return call.result();
}

CUresult Instantiate(const char* name, CUgraphExec* executable, CUgraph handle) {
  Call call(name, {{"graph", handle}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph == nullptr) return call.result();
  *executable = Simulator::Get().executables.Add(Executable::Make(*graph));
  return call.result();
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  Call call("cuGraphCreate", {{"flags", flags}});
  if (!call.ok()) return call.result();
  *graph = simgpu::NewGraph();
  return call.result();
}

CUresult cuGraphDestroy(CUgraph graph) {
  Call call("cuGraphDestroy", {{"graph", graph}});
  if (!call.ok()) return call.result();
  if (simgpu::DestroyGraph(graph)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph is not alive");
}

CUresult cuGraphClone(CUgraph* clone, CUgraph handle) {
  Call call("cuGraphClone", {{"graph", handle}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph != nullptr) *clone = simgpu::CloneGraph(*graph);
  return call.result();
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return AddNode("cuGraphAddKernelNode", node, graph, dependencies, count, *parameters);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMCPY3D* parameters, CUcontext) {
  return AddNode("cuGraphAddMemcpyNode", node, graph, dependencies, count, *parameters);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters,
                              CUcontext) {
  return AddNode("cuGraphAddMemsetNode", node, graph, dependencies, count, *parameters);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                             std::size_t count) {
  Call call("cuGraphAddEmptyNode", {{"graph", handle}, {"dependencies", count}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph != nullptr)
    *node = graph->Add(Work(), Dependencies(dependencies, dependencies + count));
  return call.result();
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph handle,
                                  const CUgraphNode* dependencies, std::size_t count,
                                  CUgraph child_handle) {
  Call call("cuGraphAddChildGraphNode", {{"graph", handle}, {"child", child_handle}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  const std::shared_ptr<Graph> child = graph == nullptr ? nullptr : FindGraph(call, child_handle);
  if (child == nullptr) return call.result();
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_GRAPH;
  *node = graph->Add(work, Dependencies(dependencies, dependencies + count),
                     {simgpu::CloneGraph(*child)});
  return call.result();
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, CUgraphNodeParams* parameters) {
  return AddAny(node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, std::size_t count,
                           CUgraphNodeParams* parameters) {
  return AddAny(node, graph, dependencies, count, parameters);
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                        unsigned int value, unsigned int flags) {
  Call call("cuGraphConditionalHandleCreate",
            {{"graph", graph}, {"value", value}, {"flags", flags}});
  if (FindGraph(call, graph) == nullptr) return call.result();
  static std::atomic<CUgraphConditionalHandle> next{1};
  *handle = next++;
  return call.result();
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  Call call("cuGraphGetNodes", {{"graph", handle}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph == nullptr) return call.result();
  Dependencies all;
  for (const std::shared_ptr<Node>& node : graph->nodes()) all.push_back(node->handle);
  return GiveNodes(call, all, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  Call call("cuGraphGetRootNodes", {{"graph", handle}});
  const std::shared_ptr<Graph> graph = FindGraph(call, handle);
  if (graph == nullptr) return call.result();
  Dependencies all;
  for (const std::shared_ptr<Node>& node : graph->nodes()) {
    if (node->dependencies.empty()) all.push_back(node->handle);
  }
  return GiveNodes(call, all, nodes, count);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  Call call("cuGraphNodeGetType", {{"node", handle}});
  const std::shared_ptr<Node> node = FindNode(call, handle);
  if (node != nullptr) *type = node->work.type;
  return call.result();
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* nodes, std::size_t* count) {
  Call call("cuGraphNodeGetDependencies", {{"node", handle}});
  const std::shared_ptr<Node> node = FindNode(call, handle);
  return node == nullptr ? call.result() : GiveNodes(call, node->dependencies, nodes, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes,
                                       CUgraphEdgeData* edges, std::size_t* count) {
  if (edges != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
  return cuGraphNodeGetDependencies(handle, nodes, count);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  Call call("cuGraphChildGraphNodeGetGraph", {{"node", handle}});
  const std::shared_ptr<Node> node = FindNode(call, handle);
  if (node == nullptr) return call.result();
  if (node->bodies.empty()) return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the node has no graph");
  *graph = node->bodies[0];
  return call.result();
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned int) {
  Call call("cuGraphDebugDotPrint", {{"graph", graph}});
  if (call.is_logged()) call.Note(path);
  return call.result();
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  return Instantiate("cuGraphInstantiate", executable, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  const CUresult result = Instantiate("cuGraphInstantiateWithParams", executable, graph);
  if (result == CUDA_SUCCESS) parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  Call call("cuGraphExecDestroy", {{"executable", executable}});
  if (!call.ok()) return call.result();
  if (Simulator::Get().executables.Remove(executable) != nullptr) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the executable graph is not alive");
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return SetNode("cuGraphExecKernelNodeSetParams", executable, node, *parameters);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D* parameters, CUcontext) {
  return SetNode("cuGraphExecMemcpyNodeSetParams", executable, node, *parameters);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return SetNode("cuGraphExecMemsetNodeSetParams", executable, node, *parameters);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                  CUgraphNodeParams* parameters) {
  if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return cuGraphExecChildGraphNodeSetParams(executable, node, parameters->graph.graph);
  }
  return SetNode("cuGraphExecNodeSetParams", executable, node, *parameters);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraph child) {
  Call call("cuGraphExecChildGraphNodeSetParams", {{"executable", handle}, {"node", node}});
  const std::shared_ptr<Executable> executable = FindExecutable(call, handle);
  const std::shared_ptr<Graph> body = executable == nullptr ? nullptr : FindGraph(call, child);
  if (body == nullptr || executable->SetBody(node, *body)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph has no such node");
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
  Call call("cuGraphNodeSetEnabled", {{"executable", handle}, {"node", node}, {"on", enabled}});
  const std::shared_ptr<Executable> executable = FindExecutable(call, handle);
  if (executable == nullptr || executable->SetEnabled(node, enabled != 0)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the graph has no such node");
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  Call call("cuGraphExecUpdate", {{"executable", handle}, {"graph", graph_handle}});
  const std::shared_ptr<Executable> executable = FindExecutable(call, handle);
  const std::shared_ptr<Graph> graph =
      executable == nullptr ? nullptr : FindGraph(call, graph_handle);
  if (graph == nullptr) return call.result();
  *info = {};
  if (executable->Update(*graph)) return call.result();
  info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  return call.Return(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  Call call("cuGraphUpload", {{"executable", executable}, {"stream", stream}});
  FindExecutable(call, executable);
  return call.result();
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  Call call("cuGraphLaunch", {{"executable", handle}, {"stream", stream}}, Call::Needs::kContext);
  const std::shared_ptr<Executable> executable = FindExecutable(call, handle);
  if (executable == nullptr) return call.result();
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.name = "cuGraphLaunch";
  work.check = [executable] { return executable->Check(); };
  work.run = [executable] { return executable->Run(); };
  work.parts = [executable] { return executable->Parts(); };
  return call.Return(Simulator::Get().Start(stream, work));
}

}  // extern "C"
