#include "tf_plugin/op_rules.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "allocator/thimble.h"

namespace thimble::tf {
namespace {

struct Entry {
  absl::string_view type;  // a * at the begin or end stands for any text
  OpRule rule;
};

// The first match counts. When in doubt, leave an op out: kUses is always right for an op that ends
// before anyone else sees its tensors, and accesses.h finds opaque inputs and outputs by itself.
constexpr Entry kTable[] = {
    // The border of a function. Its caller may be Python or tf.data, and may hold arguments and
    // results as NumPy arrays, through DLPack, in caches or in batches.
    {"_Arg", OpRule::kExposes},
    {"_DeviceArg", OpRule::kExposes},
    {"_Retval", OpRule::kReturns},
    {"_DeviceRetval", OpRule::kReturns},

    // Variables.
    {"ReadVariableOp", OpRule::kReadsVariable},
    {"AssignVariableOp", OpRule::kAssignsVariable},
    {"VarHandleOp", OpRule::kForwards},
    {"VarIsInitializedOp", OpRule::kForwards},
    {"VariableShape", OpRule::kForwards},
    {"DestroyResourceOp", OpRule::kForwards},
    {"Variable", OpRule::kMakesReference},
    {"VariableV2", OpRule::kMakesReference},

    // Shapes, and other views of the same bytes.
    {"Shape", OpRule::kForwards},
    {"ShapeN", OpRule::kForwards},
    {"Size", OpRule::kForwards},
    {"Rank", OpRule::kForwards},
    {"Reshape", OpRule::kForwards},
    {"Squeeze", OpRule::kForwards},
    {"ExpandDims", OpRule::kForwards},
    {"EnsureShape", OpRule::kForwards},

    // The output is the input tensor, or one that the kernel keeps.
    {"Const", OpRule::kForwards},
    {"HostConst", OpRule::kForwards},
    {"NoOp", OpRule::kForwards},
    {"ControlTrigger", OpRule::kForwards},
    {"Identity", OpRule::kForwards},
    {"IdentityN", OpRule::kForwards},
    {"StopGradient", OpRule::kForwards},
    {"PreventGradient", OpRule::kForwards},
    {"GuaranteeConst", OpRule::kForwards},
    {"PlaceholderWithDefault", OpRule::kForwards},

    // Control flow.
    {"Enter", OpRule::kForwards},
    {"Exit", OpRule::kForwards},
    {"NextIteration", OpRule::kForwards},
    {"Merge", OpRule::kForwards},
    {"Switch", OpRule::kForwards},
    {"_SwitchN", OpRule::kForwards},
    {"LoopCond", OpRule::kForwards},

    // Calls: the ops inside announce their own uses.
    {"PartitionedCall", OpRule::kCalls},
    {"StatefulPartitionedCall", OpRule::kCalls},
    {"If", OpRule::kForwards},
    {"StatelessIf", OpRule::kForwards},
    {"Case", OpRule::kForwards},
    {"StatelessCase", OpRule::kForwards},
    {"While", OpRule::kForwards},
    {"StatelessWhile", OpRule::kForwards},
    {"_While", OpRule::kForwards},

    // Lists: tensors come and go whole. Those that copy, such as TensorListStack, are not here.
    {"EmptyTensorList", OpRule::kForwards},
    {"TensorListReserve", OpRule::kForwards},
    {"TensorListResize", OpRule::kForwards},
    {"TensorListLength", OpRule::kForwards},
    {"TensorListElementShape", OpRule::kForwards},
    {"TensorListPushBack", OpRule::kForwards},
    {"TensorListPopBack", OpRule::kForwards},
    {"TensorListGetItem", OpRule::kForwards},
    {"TensorListSetItem", OpRule::kForwards},

    // Python.
    {"PyFunc*", OpRule::kExposes},
    {"EagerPyFunc", OpRule::kExposes},

    // Other devices, and copies that do not pass Compute().
    {"Send", OpRule::kExposes},
    {"Recv", OpRule::kExposes},
    {"_Send", OpRule::kExposes},
    {"_Recv", OpRule::kExposes},
    {"_HostSend", OpRule::kExposes},
    {"_HostRecv", OpRule::kExposes},
    {"Collective*", OpRule::kExposes},
    {"Nccl*", OpRule::kExposes},
    {"_Nccl*", OpRule::kExposes},
    {"_ScopedAllocator*", OpRule::kExposes},
    {"RemoteCall", OpRule::kExposes},

    // tf.data, and areas in which tensors wait for other ops.
    {"Iterator*", OpRule::kExposes},
    {"*Iterator", OpRule::kExposes},
    {"MultiDeviceIterator*", OpRule::kExposes},
    {"Dataset*", OpRule::kExposes},
    {"*Dataset", OpRule::kExposes},
    {"*DatasetV2", OpRule::kExposes},
    {"*DatasetV3", OpRule::kExposes},
    {"*DatasetV4", OpRule::kExposes},
    {"Optional*", OpRule::kExposes},
    {"Stage*", OpRule::kExposes},
    {"Unstage", OpRule::kExposes},
    {"MapStage*", OpRule::kExposes},
    {"MapUnstage*", OpRule::kExposes},
    {"MapPeek", OpRule::kExposes},
    {"OrderedMap*", OpRule::kExposes},
    {"Batch", OpRule::kExposes},
    {"Unbatch*", OpRule::kExposes},
    {"BatchFunction", OpRule::kExposes},

    // Compiled functions keep and alias buffers in ways that nobody announces.
    {"Xla*", OpRule::kExposesVariables},
    {"_Xla*", OpRule::kExposesVariables},
    {"TPU*", OpRule::kExposesVariables},
};

bool Fits(absl::string_view type, absl::string_view pattern) {
  if (absl::ConsumeSuffix(&pattern, "*")) return absl::StartsWith(type, pattern);
  if (absl::ConsumePrefix(&pattern, "*")) return absl::EndsWith(type, pattern);
  return type == pattern;
}

OpRule LookUp(absl::string_view type) {
  for (const Entry& entry : kTable) {
    if (Fits(type, entry.type)) return entry.rule;
  }
  return OpRule::kUses;
}

// Types that were looked up. An entry is the hash of a type, with its rule plus one in the last
// four bits. A type may replace another, which is then looked up again.
constexpr std::size_t kPlaces = 4096;
constexpr std::uint64_t kRuleBits = 15;
static_assert(static_cast<std::uint64_t>(OpRule::kExposesVariables) < kRuleBits, "the last rule");

std::array<std::atomic<std::uint64_t>, kPlaces> known;

}  // namespace

OpRule RuleOf(absl::string_view type) {
  const std::uint64_t hash = thimble_key_of(type.data(), type.size());
  std::atomic<std::uint64_t>& place = known[hash / (kRuleBits + 1) % kPlaces];
  const std::uint64_t found = place.load(std::memory_order_relaxed);
  if ((found ^ hash) <= kRuleBits && found != 0) {
    return static_cast<OpRule>((found & kRuleBits) - 1);
  }
  const OpRule rule = LookUp(type);
  place.store((hash & ~kRuleBits) | (static_cast<std::uint64_t>(rule) + 1),
              std::memory_order_relaxed);
  return rule;
}

}  // namespace thimble::tf
