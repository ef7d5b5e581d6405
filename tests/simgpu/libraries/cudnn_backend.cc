// libcudnn.so.9: the graph interface. A descriptor is a map of attributes, some of which are other
// descriptors; one engine fits every graph; an execution checks the tensors' addresses.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
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
constexpr int kPlanWorkspaceBytes = 402;
constexpr int kPlanJson = 405;
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

bool AllUsable(const Node& pack, int name) {
  const auto found = pack.attributes.find(name);
  if (found == pack.attributes.end()) return true;
  const std::vector<char>& bytes = found->second.bytes;
  for (std::size_t at = 0; at + sizeof(void*) <= bytes.size(); at += sizeof(void*)) {
    void* pointer;
    std::memcpy(&pointer, &bytes[at], sizeof pointer);
    if (simgpu_bad_pointer(pointer, "cudnnBackendExecute")) return false;
  }
  return true;
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

SIMGPU_API Status cudnnBackendExecute(void*, Descriptor*, Descriptor* pack) {
  const bool usable =
      AllUsable(*pack->node, kPackPointers) && AllUsable(*pack->node, kPackWorkspace);
  return usable ? kSuccess : kExecutionFailed;
}
