// libcudnn.so.9: the graph interface. A descriptor is a map of attributes, some of which are other
// descriptors; one engine fits every graph; an execution checks the tensors' addresses.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/simgpu/libraries/driver.h"

namespace {

using Status = int;
constexpr Status kSuccess = 0;
constexpr Status kExecutionFailed = 5000;

// cudnnBackendAttributeType_t, as far as sizes depend on it.
constexpr int kTypeHandle = 0;
constexpr int kTypeBoolean = 2;
constexpr int kTypeInt64 = 3;
constexpr int kTypeDouble = 5;
constexpr int kTypeVoidPointer = 6;
constexpr int kTypeDescriptor = 15;
constexpr int kTypeCharacter = 24;
constexpr int kTypeFraction = 26;

// cudnnBackendAttributeName_t, for attributes whose value is not the one that was set.
constexpr int kHeuristicGraph = 201;
constexpr int kHeuristicResults = 202;
constexpr int kConfigurationEngine = 300;
constexpr int kConfigurationWorkspaceBytes = 303;
constexpr int kPlanConfiguration = 401;
constexpr int kPlanWorkspaceBytes = 402;
constexpr int kPlanJson = 405;
constexpr int kGraphOperations = 801;
constexpr int kGraphEngineCount = 802;
constexpr int kPackPointers = 1001;
constexpr int kPackWorkspace = 1003;
constexpr int kEngineGraph = 1300;
constexpr int kEngineIndex = 1301;

constexpr std::int64_t kWorkspaceBytes = std::int64_t{4} << 20;

std::size_t BytesOf(int type) {
  switch (type) {
    case kTypeBoolean:
    case kTypeCharacter:
      return 1;
    case kTypeHandle:
    case kTypeInt64:
    case kTypeDouble:
    case kTypeVoidPointer:
      return 8;
    case kTypeFraction:
      return 16;
    default:
      return 4;  // enumerations, float, int32
  }
}

// The tensors of a convolution, in each of its three directions: what its operations are counted
// by.
struct Convolution {
  int weights;
  int output;
};
constexpr Convolution kConvolutions[] = {{703, 705}, {709, 711}, {715, 717}};
constexpr int kMatmulA = 1520;
constexpr int kMatmulC = 1522;
constexpr int kTensorType = 901;
constexpr int kTensorDimensions = 902;
constexpr int kTensorIsVirtual = 907;

struct Node;
using NodePointer = std::shared_ptr<Node>;

struct Attribute {
  std::int64_t count = 0;
  std::vector<char> bytes;
  std::vector<NodePointer> nodes;
};

struct Node {
  std::map<int, Attribute> attributes;
};

// What the caller holds. Getting a descriptor out of another one makes both show the same node.
struct Descriptor {
  NodePointer node = std::make_shared<Node>();
};

Attribute Number(std::int64_t value) {
  const char* const begin = reinterpret_cast<const char*>(&value);
  return {1, {begin, begin + sizeof value}, {}};
}

Attribute Text(const char* text) {
  const std::size_t count = std::strlen(text) + 1;
  return {static_cast<std::int64_t>(count), {text, text + count}, {}};
}

Attribute One(NodePointer node) { return {1, {}, {std::move(node)}}; }

// The only answer of the heuristics: a configuration of engine 0 for the graph that was asked for.
Attribute OneConfiguration(const Node& heuristic) {
  auto engine = std::make_shared<Node>();
  engine->attributes[kEngineIndex] = Number(0);
  const auto graph = heuristic.attributes.find(kHeuristicGraph);
  if (graph != heuristic.attributes.end()) engine->attributes[kEngineGraph] = graph->second;
  auto configuration = std::make_shared<Node>();
  configuration->attributes[kConfigurationEngine] = One(std::move(engine));
  return One(std::move(configuration));
}

// Attributes that every real descriptor has without being set.
Attribute Derived(const Node& node, int name) {
  switch (name) {
    case kHeuristicResults:
      return OneConfiguration(node);
    case kConfigurationWorkspaceBytes:
    case kPlanWorkspaceBytes:
      return Number(kWorkspaceBytes);
    case kGraphEngineCount:
      return Number(1);
    case kPlanJson:
      return Text("{}");
    default:
      return {};
  }
}

void AppendPointers(const Node& pack, int name, std::vector<const void*>* pointers) {
  const auto found = pack.attributes.find(name);
  if (found == pack.attributes.end()) return;
  const std::vector<char>& bytes = found->second.bytes;
  for (std::size_t at = 0; at + sizeof(void*) <= bytes.size(); at += sizeof(void*)) {
    pointers->emplace_back();
    std::memcpy(&pointers->back(), &bytes[at], sizeof(void*));
  }
}

// The first descriptor that an attribute holds, or null.
const Node* ChildOf(const Node* node, int name) {
  if (node == nullptr) return nullptr;
  const auto found = node->attributes.find(name);
  const bool has_one = found != node->attributes.end() && !found->second.nodes.empty();
  return has_one ? found->second.nodes[0].get() : nullptr;
}

template <typename Value>
std::vector<Value> ValuesOf(const Node& node, int name) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return {};
  const std::vector<char>& bytes = found->second.bytes;
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

double ElementsOf(const Node& tensor) {
  double product = 1;
  for (const std::int64_t size : ValuesOf<std::int64_t>(tensor, kTensorDimensions)) product *= size;
  return product;
}

// Floats are rounded to TF32 on the way in, as both frameworks have it by default.
int MathOf(const Node& tensor) {
  const std::vector<std::int32_t> type = ValuesOf<std::int32_t>(tensor, kTensorType);
  switch (type.empty() ? 0 : type[0]) {
    case 0:  // float
      return simgpu_tf32;
    case 1:  // double
      return simgpu_fp64;
    case 2:  // half
    case 9:  // bfloat16
      return simgpu_half;
    default:
      return simgpu_byte;
  }
}

// By Winograd's algorithm filters of 3 x 3 need 4 / 9 of the multiplications, and more of
// everything else. Measured: VGG-16, which has no others, trains 1.6 times as fast as its
// operations allow.
constexpr double kWinograd = 1.6;
bool IsSmallFilter(const std::vector<std::int64_t>& sizes) {
  return sizes.size() == 4 && sizes[2] == 3 && sizes[3] == 3;
}

bool IsVirtual(const Node& tensor) {
  const std::vector<char> is_virtual = ValuesOf<char>(tensor, kTensorIsVirtual);
  return !is_virtual.empty() && is_virtual[0] != 0;
}

// What the operations of a graph compute and touch.
void AddOperation(const Node& operation, std::set<const Node*>* tensors, simgpu_work* work) {
  for (const auto& [name, attribute] : operation.attributes) {
    for (const NodePointer& child : attribute.nodes) {
      const bool is_tensor = child->attributes.count(kTensorDimensions) != 0;
      if (!is_tensor || IsVirtual(*child) || !tensors->insert(child.get()).second) continue;
      work->bytes += ElementsOf(*child) * simgpu::BytesOf(MathOf(*child));
    }
  }
  for (const Convolution& convolution : kConvolutions) {
    const Node* const weights = ChildOf(&operation, convolution.weights);
    const Node* const output = ChildOf(&operation, convolution.output);
    if (weights == nullptr || output == nullptr) continue;
    const auto sizes = ValuesOf<std::int64_t>(*weights, kTensorDimensions);
    // For each element of the output: one filter, of which the weights have as many as channels.
    const double flops =
        2 * ElementsOf(*output) * ElementsOf(*weights) / (sizes.empty() ? 1 : sizes[0]);
    work->flops += flops;
    work->simd_flops += IsSmallFilter(sizes) ? flops / kWinograd : flops;
    work->math = MathOf(*weights);
  }
  const Node* const a = ChildOf(&operation, kMatmulA);
  const Node* const c = ChildOf(&operation, kMatmulC);
  if (a == nullptr || c == nullptr) return;
  const auto sizes = ValuesOf<std::int64_t>(*a, kTensorDimensions);
  const double flops = 2 * ElementsOf(*c) * (sizes.empty() ? 1 : sizes.back());
  work->flops += flops;
  work->simd_flops += flops;
  work->math = MathOf(*a);
}

}  // namespace

SIMGPU_API Status cudnnBackendCreateDescriptor(int, Descriptor** descriptor) {
  *descriptor = new Descriptor;
  return kSuccess;
}

SIMGPU_API Status cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return kSuccess;
}

SIMGPU_API Status cudnnBackendSetAttribute(Descriptor* descriptor, int name, int type,
                                           std::int64_t count, const void* values) {
  Attribute attribute;
  attribute.count = count;
  if (type == kTypeDescriptor) {
    const auto children = static_cast<Descriptor* const*>(values);
    for (std::int64_t i = 0; i < count; ++i) attribute.nodes.push_back(children[i]->node);
  } else if (count && values) {
    const char* const begin = static_cast<const char*>(values);
    attribute.bytes.assign(begin, begin + count * BytesOf(type));
  }
  descriptor->node->attributes[name] = std::move(attribute);
  return kSuccess;
}

SIMGPU_API Status cudnnBackendGetAttribute(Descriptor* descriptor, int name, int type,
                                           std::int64_t wanted, std::int64_t* count, void* values) {
  Node& node = *descriptor->node;
  const auto found = node.attributes.find(name);
  const Attribute attribute = found == node.attributes.end() ? Derived(node, name) : found->second;
  if (count) *count = attribute.count;
  if (!values) return kSuccess;
  const std::int64_t given = std::min(wanted, attribute.count);
  if (type == kTypeDescriptor) {
    const auto children = static_cast<Descriptor**>(values);
    const auto nodes = std::min<std::int64_t>(given, attribute.nodes.size());
    for (std::int64_t i = 0; i < nodes; ++i) children[i]->node = attribute.nodes[i];
  } else if (given > 0) {
    const std::size_t bytes = std::min(given * BytesOf(type), attribute.bytes.size());
    std::memcpy(values, attribute.bytes.data(), bytes);
  }
  return kSuccess;
}

SIMGPU_API Status cudnnBackendExecute(const void* handle, Descriptor* plan, Descriptor* pack) {
  std::vector<const void*> pointers;
  AppendPointers(*pack->node, kPackPointers, &pointers);
  AppendPointers(*pack->node, kPackWorkspace, &pointers);
  simgpu_work work = {};
  work.name = "cudnnBackendExecute";
  work.stream = simgpu::StreamOf(handle);
  work.math = simgpu_tf32;
  work.pointers = pointers.data();
  work.pointer_count = pointers.size();
  const Node* const configuration =
      plan == nullptr ? nullptr : ChildOf(plan->node.get(), kPlanConfiguration);
  const Node* const engine = ChildOf(configuration, kConfigurationEngine);
  if (const Node* const graph = ChildOf(engine, kEngineGraph)) {
    std::set<const Node*> tensors;
    const auto operations = graph->attributes.find(kGraphOperations);
    if (operations != graph->attributes.end()) {
      for (const NodePointer& one : operations->second.nodes) AddOperation(*one, &tensors, &work);
    }
  }
  return simgpu::Submit(work) ? kSuccess : kExecutionFailed;
}
