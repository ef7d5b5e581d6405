#include "tests/swap/problems.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/workloads/trace_writer.h"

namespace thimble::schedule {
namespace {

// Ascending, different, in [0, most).
std::vector<std::int32_t> RandomTouches(std::int32_t most, workloads::Random& random) {
  std::vector<std::int32_t> touches;
  for (std::size_t i = 1 + random.Index(5); i > 0; --i) {
    touches.push_back(static_cast<std::int32_t>(random.Index(most)));
  }
  std::sort(touches.begin(), touches.end());
  touches.erase(std::unique(touches.begin(), touches.end()), touches.end());
  return touches;
}

Block RandomBlock(std::int32_t ops, workloads::Random& random) {
  Block block;
  block.bytes = static_cast<std::int64_t>(random.LogUniform(kMiB, 64 * kMiB));
  const std::size_t kind = random.Index(4);
  block.touches = RandomTouches(kind == 2 ? 2 * ops : ops, random);
  // The first one is in the first step, so that the block is allocated there.
  if (block.touches.front() >= ops) block.touches.insert(block.touches.begin(), ops - 1);
  block.is_cyclic = kind == 0;
  if (kind == 1) {
    const std::int32_t room = ops - block.touches.back();
    block.dies = block.touches.back() + 1 + static_cast<std::int32_t>(random.Index(room));
  } else if (kind == 2) {
    block.dies =
        std::min(2 * ops, block.touches.back() + 1 + static_cast<std::int32_t>(random.Index(ops)));
  }
  return block;
}

// Adds a block to what is live while it exists.
void AddLive(const Block& block, std::vector<Op>* ops) {
  const std::int32_t count = static_cast<std::int32_t>(ops->size());
  const std::int32_t begin = block.is_cyclic ? 0 : block.touches.front();
  const std::int32_t last = block.touches.back() < count ? count : 2 * count;
  const std::int32_t end = block.is_cyclic               ? count
                           : block.dies == Block::kLives ? last
                                                         : block.dies;
  for (std::int32_t op = begin; op < end; ++op) (*ops)[op % count].live_bytes += block.bytes;
}

// One layer forward and backward. Ids are of live blocks of the writer.
struct Layer {
  Bytes bytes = 0;
  std::int64_t ns = 0;
  std::uint32_t weight = 0;
  std::uint32_t moment = 0;
  std::uint32_t activation = 0;
};

void WriteStep(std::vector<Layer>& layers, std::uint32_t* batch, workloads::TraceWriter* writer) {
  std::uint32_t input = *batch;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers[i];
    layer.activation = writer->Allocate(layer.bytes);
    const std::uint32_t scratch = writer->Allocate(layer.bytes / 8);
    writer->Access(absl::StrCat("layer", i), layer.ns, {input, layer.weight},
                   {layer.activation, scratch});
    writer->Free(scratch);
    input = layer.activation;
  }
  const std::uint32_t next_batch = writer->Allocate(writer->bytes_of(*batch));
  writer->Access("copy_batch", 0, {}, {next_batch});
  std::uint32_t gradient = writer->Allocate(layers.back().bytes);
  writer->Access("loss", layers.back().ns, {input}, {gradient});
  for (std::size_t i = layers.size(); i-- > 0;) {
    Layer& layer = layers[i];
    const std::uint32_t below = i == 0 ? *batch : layers[i - 1].activation;
    const std::uint32_t next = writer->Allocate(writer->bytes_of(below));
    writer->Access(absl::StrCat("grad/layer", i), 2 * layer.ns,
                   {gradient, layer.activation, layer.weight, below}, {next});
    writer->Free(gradient);
    writer->Free(layer.activation);
    writer->Access("adam", layer.ns / 8, {next}, {layer.weight, layer.moment});
    gradient = next;
  }
  writer->Free(gradient);
  writer->Free(*batch);
  *batch = next_batch;
}

}  // namespace

Problem ProblemOf(const std::vector<std::int64_t>& live, Ns ns) {
  Problem problem;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const std::int64_t before = live[(i + live.size() - 1) % live.size()];
    problem.ops.push_back({absl::StrCat("op", i), 0, ns, live[i], std::min(live[i], before)});
  }
  return problem;
}

Problem RandomProblem(workloads::Random& random) {
  Problem problem;
  const std::int32_t ops = static_cast<std::int32_t>(2 + random.Index(30));
  for (std::int32_t i = 0; i < ops; ++i) {
    const Ns ns = random.Index(4) == 0 ? 0 : static_cast<Ns>(random.Index(5 * kMs));
    problem.ops.push_back({absl::StrCat("op", i), 0, ns, 8 * kMiB, 0});
  }
  problem.ops.back().ns += 1;
  for (std::size_t i = random.Index(20); i > 0; --i) {
    problem.blocks.push_back(RandomBlock(ops, random));
    AddLive(problem.blocks.back(), &problem.ops);
  }
  const Op* before = &problem.ops.back();
  for (Op& op : problem.ops) {
    op.waiting_bytes = std::min(op.live_bytes, before->live_bytes);
    before = &op;
  }
  return problem;
}

std::string TrainingTrace(int layers, int steps, std::uint64_t seed) {
  workloads::Random random(seed);
  workloads::TraceWriter writer;
  std::vector<Layer> network(layers);
  for (Layer& layer : network) {
    layer.bytes = random.LogUniform(kMiB / 2, 48 * kMiB);
    layer.ns = static_cast<std::int64_t>(random.Index(4 * kMs)) + kMs / 10;
    layer.weight = writer.Allocate(random.LogUniform(kMiB / 2, 32 * kMiB));
    layer.moment = writer.Allocate(writer.bytes_of(layer.weight));
  }
  std::uint32_t batch = writer.Allocate(4 * kMiB);
  for (int step = 0; step < steps; ++step) {
    writer.Step();
    WriteStep(network, &batch, &writer);
  }
  writer.Step();
  return std::move(writer).Finish();
}

}  // namespace thimble::schedule
