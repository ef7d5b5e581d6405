#include "tests/simgpu/driver/graph.h"

#include <map>
#include <utility>

#include "tests/simgpu/driver/simulator.h"

namespace simgpu {

CUgraphNode Graph::Add(const Work& work, std::vector<CUgraphNode> dependencies,
                       std::vector<CUgraph> bodies) {
  auto node = std::make_shared<Node>();
  node->work = work;
  node->dependencies = std::move(dependencies);
  node->bodies = std::move(bodies);
  node->handle = Simulator::Get().nodes.Add(node);
  std::lock_guard<std::mutex> lock(mutex_);
  nodes_.push_back(node);
  return last_ = node->handle;
}

void Graph::Append(const Work& work) {
  std::vector<CUgraphNode> dependencies;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (last_ != nullptr) dependencies.push_back(last_);
  }
  Add(work, std::move(dependencies));
}

std::vector<std::shared_ptr<Node>> Graph::nodes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return nodes_;
}

void Graph::Join(const std::shared_ptr<Stream>& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  joined_.push_back(stream);
}

void Graph::EndCapture() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::weak_ptr<Stream>& one : joined_) {
    if (const std::shared_ptr<Stream> stream = one.lock()) stream->SetCapture(nullptr);
  }
  joined_.clear();
}

std::shared_ptr<Executable> Executable::Make(const Graph& graph) {
  auto executable = std::make_shared<Executable>();
  for (const std::shared_ptr<Node>& node : graph.nodes()) {
    Step step = {node->handle, node->work, /*enabled=*/true, {}};
    for (const CUgraph handle : node->bodies) {
      const std::shared_ptr<Graph> body = Simulator::Get().graphs.Find(handle);
      if (body != nullptr) step.bodies.push_back(Make(*body));
    }
    executable->steps_.push_back(std::move(step));
  }
  return executable;
}

bool Executable::Change(CUgraphNode node, const std::function<bool(Step&)>& change) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Step& step : steps_) {
    if (step.node == node) return change(step);
    for (const std::shared_ptr<Executable>& body : step.bodies) {
      if (body->Change(node, change)) return true;
    }
  }
  return false;
}

bool Executable::SetWork(CUgraphNode node, const Work& work) {
  return Change(node, [&work](Step& step) {
    if (step.work.type != work.type) return false;
    step.work = work;
    return true;
  });
}

bool Executable::SetBody(CUgraphNode node, const Graph& body) {
  return Change(node, [made = Make(body)](Step& step) {
    step.bodies = {made};
    return true;
  });
}

bool Executable::SetEnabled(CUgraphNode node, bool enabled) {
  return Change(node, [enabled](Step& step) {
    step.enabled = enabled;
    return true;
  });
}

bool Executable::Update(const Graph& graph) {
  const std::shared_ptr<Executable> other = Make(graph);
  std::lock_guard<std::mutex> lock(mutex_);
  if (other->steps_.size() != steps_.size()) return false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (other->steps_[i].work.type != steps_[i].work.type) return false;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].work = other->steps_[i].work;
    steps_[i].bodies = other->steps_[i].bodies;
  }
  return true;
}

template <typename Visit>
Outcome Executable::ForEach(Visit visit) const {
  std::vector<Step> steps;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    steps = steps_;
  }
  for (const Step& step : steps) {
    if (!step.enabled) continue;
    const Outcome outcome = visit(step);
    if (!outcome.ok()) return outcome;
  }
  return Success();
}

Outcome Executable::Check() const {
  return ForEach([](const Step& step) {
    if (step.work.type == CU_GRAPH_NODE_TYPE_GRAPH) return step.bodies[0]->Check();
    return step.work.check ? step.work.check() : Success();
  });
}

Outcome Executable::Run() const {
  return ForEach([](const Step& step) {
    if (step.work.type == CU_GRAPH_NODE_TYPE_GRAPH) return step.bodies[0]->Run();
    return step.work.run ? step.work.run() : Success();
  });
}

std::vector<Work> Executable::Parts() const {
  std::vector<Work> parts;
  ForEach([&parts](const Step& step) {
    if (step.work.type != CU_GRAPH_NODE_TYPE_GRAPH) {
      parts.push_back(step.work);
    } else {
      for (Work& part : step.bodies[0]->Parts()) parts.push_back(std::move(part));
    }
    return Success();
  });
  return parts;
}

CUgraph NewGraph() {
  auto graph = std::make_shared<Graph>();
  const CUgraph handle = Simulator::Get().graphs.Add(graph);
  graph->handle = handle;
  return handle;
}

CUgraph CloneGraph(const Graph& graph) {
  Simulator& simulator = Simulator::Get();
  const CUgraph handle = NewGraph();
  const std::shared_ptr<Graph> clone = simulator.graphs.Find(handle);
  std::map<CUgraphNode, CUgraphNode> clones;
  for (const std::shared_ptr<Node>& node : graph.nodes()) {
    std::vector<CUgraphNode> dependencies;
    for (const CUgraphNode one : node->dependencies) dependencies.push_back(clones[one]);
    std::vector<CUgraph> bodies;
    for (const CUgraph one : node->bodies) {
      if (const auto body = simulator.graphs.Find(one)) bodies.push_back(CloneGraph(*body));
    }
    clones[node->handle] = clone->Add(node->work, std::move(dependencies), std::move(bodies));
  }
  return handle;
}

bool DestroyGraph(CUgraph handle) {
  Simulator& simulator = Simulator::Get();
  const std::shared_ptr<Graph> graph = simulator.graphs.Remove(handle);
  if (graph == nullptr) return false;
  for (const std::shared_ptr<Node>& node : graph->nodes()) {
    for (const CUgraph body : node->bodies) DestroyGraph(body);
    simulator.nodes.Remove(node->handle);
  }
  return true;
}

}  // namespace simgpu
