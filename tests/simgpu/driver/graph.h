// Graphs: work that is described once and launched often.
//
// The nodes of a graph run in the order in which they were added, which their dependencies always
// allow. A conditional node never runs its body, because kernels write its condition.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cuda.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

struct Node {
  CUgraphNode handle = nullptr;
  Work work;
  std::vector<CUgraphNode> dependencies;
  std::vector<CUgraph> bodies;  // of a child graph node (one), or of a conditional
};

class Graph {
 public:
  // `handle` is known once the graph is in the table.
  CUgraph handle = nullptr;

  // Behind `dependencies`.
  CUgraphNode Add(const Work& work, std::vector<CUgraphNode> dependencies,
                  std::vector<CUgraph> bodies = {});
  // Appends a node after all earlier ones, as capturing does.
  void Append(const Work& work);
  std::vector<std::shared_ptr<Node>> nodes() const;

  // Streams that capture into this graph, so that the end of the capture reaches all of them.
  void Join(const std::shared_ptr<Stream>& stream);
  void EndCapture();

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Node>> nodes_;
  CUgraphNode last_ = nullptr;
  std::vector<std::weak_ptr<Stream>> joined_;
};

// A graph that can be launched: its own copy of the nodes.
class Executable {
 public:
  static std::shared_ptr<Executable> Make(const Graph& graph);

  // False if it has no such node.
  bool SetWork(CUgraphNode node, const Work& work);
  bool SetBody(CUgraphNode node, const Graph& body);
  bool SetEnabled(CUgraphNode node, bool enabled);
  // False if `graph` is built differently.
  bool Update(const Graph& graph);

  Outcome Check() const;
  Outcome Run() const;
  // What it consists of, in order, child graphs included.
  std::vector<Work> Parts() const;

 private:
  struct Step {
    CUgraphNode node;
    Work work;
    bool enabled;
    std::vector<std::shared_ptr<Executable>> bodies;  // of a child graph (one), or a conditional
  };

  // Changes the step of `node`, here or in a body. False if there is none, or `change` refuses.
  bool Change(CUgraphNode node, const std::function<bool(Step&)>& change);
  template <typename Visit>
  Outcome ForEach(Visit visit) const;

  mutable std::mutex mutex_;
  std::vector<Step> steps_;
};

CUgraph NewGraph();
// A copy with nodes of its own.
CUgraph CloneGraph(const Graph& graph);
// With its nodes and the graphs inside it. False if it is not alive.
bool DestroyGraph(CUgraph handle);

}  // namespace simgpu
