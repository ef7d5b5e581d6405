// Measures the cost of announcements for an op when nothing has to move.
//
//   bazel run -c opt //tests/tf_plugin:hook_time
//
// Real kernels of TensorFlow, with tensors in a real arena; only the announcement is repeated and
// timed, not the kernel, so caches are warm and nothing else uses the arena. One JSON object per
// kind of op: nanoseconds, both sides of the op together.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/thimble.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"
#include "tf_plugin/announcer.h"

namespace thimble::tf {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int kBatch = 8;  // between two looks at the clock
constexpr int kBatches = 50000;
constexpr char kName[] = "gradient_tape/functional_1/multi_head_attention_1/softmax_1/add_7";

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

class Bench {
 public:
  Bench() {
    thimble_arena* arena = nullptr;
    if (thimble_create("device:cpu,limit:1GiB,swap:auto", &arena) != THIMBLE_OK) {
      Check(absl::InternalError(thimble_last_error()));
    }
    allocator_ = new TfAllocator(arena, TfAllocator::Options());
    announcer_ = std::make_unique<Announcer>(arena, allocator_);
    device_ = std::make_unique<tensorflow::ThreadPoolDevice>(
        tensorflow::SessionOptions(), "/job:localhost/replica:0/task:0/device:CPU:0",
        tensorflow::Bytes(1 << 30), tensorflow::DeviceLocality(), allocator_);
  }

  // A tensor of 1024 * `rows` floats.
  Tensor Floats(int rows) {
    Tensor tensor(allocator_, tensorflow::DT_FLOAT, TensorShape({rows, 1024}));
    tensor.flat<float>().setZero();
    return tensor;
  }

  // The handle of a variable of that many.
  Tensor Variable(int rows) {
    auto* const variable = new tensorflow::Var(tensorflow::DT_FLOAT);
    *variable->tensor() = Floats(rows);
    variable->is_initialized = true;
    Tensor handle(tensorflow::DT_RESOURCE, TensorShape({}));
    handle.scalar<tensorflow::ResourceHandle>()() =
        tensorflow::ResourceHandle::MakeRefCountingHandle(variable, device_->name(), {});
    return handle;
  }

  void Measure(const char* what, const tensorflow::NodeDef& node, std::vector<Tensor> inputs) {
    absl::Status status;
    const std::unique_ptr<OpKernel> kernel = tensorflow::CreateOpKernel(
        tensorflow::DEVICE_CPU, device_.get(), allocator_, node, TF_GRAPH_DEF_VERSION, &status);
    Check(status);
    std::vector<tensorflow::TensorValue> values;
    for (Tensor& input : inputs) values.emplace_back(&input);
    const std::vector<tensorflow::AllocatorAttributes> attributes(
        static_cast<std::size_t>(kernel->num_outputs()) + 1);
    tensorflow::FunctionCallFrame frame({}, {});
    OpKernelContext::Params params;
    params.device = device_.get();
    params.op_kernel = kernel.get();
    params.inputs = values;
    params.output_attr_array = attributes.data();
    params.resource_manager = device_->resource_manager();
    params.call_frame = &frame;
    params.step_id = 1;
    OpKernelContext context(&params);
    device_->Compute(kernel.get(), &context);
    Check(context.status());
    Print(what, Times(kernel.get(), &context));
  }

 private:
  std::vector<double> Times(OpKernel* kernel, OpKernelContext* context) {
    std::vector<double> times;
    times.reserve(kBatches);
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kBatch; ++i) {
        const OpRule rule = RuleOf(kernel->type_string_view());
        if (!AnnouncedUse::Needs(rule, *context)) continue;
        AnnouncedUse use(announcer_.get(), rule, kernel, context);
        if (!use.Begin()) std::exit(1);
      }
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - start;
      times.push_back(time.count() / kBatch);
    }
    return times;
  }

  static void Print(const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    std::printf("{\"op\": \"%s\", \"median_ns\": %.0f, \"p99_ns\": %.0f}\n", what,
                times[times.size() / 2], times[times.size() * 99 / 100]);
  }

  TfAllocator* allocator_ = nullptr;  // never freed, as in TensorFlow
  std::unique_ptr<Announcer> announcer_;
  std::unique_ptr<tensorflow::ThreadPoolDevice> device_;
};

tensorflow::NodeDef Node(const char* type, int inputs) {
  tensorflow::NodeDef node;
  node.set_name(kName);
  node.set_op(type);
  for (int i = 0; i < inputs; ++i) node.add_input("x");
  const std::string op = type;
  const char* const attribute = op.find("Variable") == std::string::npos ? "T" : "dtype";
  (*node.mutable_attr())[attribute].set_type(tensorflow::DT_FLOAT);
  if (op == "Reshape") (*node.mutable_attr())["Tshape"].set_type(tensorflow::DT_INT32);
  if (op == "AddN") (*node.mutable_attr())["N"].set_i(inputs);
  return node;
}

void Run() {
  Bench bench;
  constexpr int kLarge = 4096;  // 16 MiB
  Tensor shape(tensorflow::DT_INT32, TensorShape({1}));
  shape.flat<std::int32_t>()(0) = -1;
  bench.Measure("forwards", Node("Reshape", 2), {bench.Floats(kLarge), shape});
  bench.Measure("reads a variable", Node("ReadVariableOp", 1), {bench.Variable(kLarge)});
  bench.Measure("2 small inputs", Node("AddV2", 2), {bench.Floats(1), bench.Floats(1)});
  bench.Measure("2 large inputs", Node("AddV2", 2), {bench.Floats(kLarge), bench.Floats(kLarge)});
  std::vector<Tensor> eight;
  for (int i = 0; i < 8; ++i) eight.push_back(bench.Floats(kLarge));
  bench.Measure("8 large inputs", Node("AddN", 8), std::move(eight));
  bench.Measure("adds to a variable", Node("AssignAddVariableOp", 2),
                {bench.Variable(kLarge), bench.Floats(kLarge)});
}

}  // namespace
}  // namespace thimble::tf

int main() { thimble::tf::Run(); }
