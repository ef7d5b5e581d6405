// Traces that are hard on allocators, made to order. Same name, length and seed: same trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/workloads/random.h"
#include "tests/workloads/trace_writer.h"

namespace thimble::workloads {

struct Generator {
  const char* name;
  const char* what;  // one line for people
  std::size_t default_ops;
  // Works until `out` has at least `ops` operations; may leave blocks live.
  void (*run)(std::size_t ops, Random* random, TraceWriter* out);
};

const std::vector<Generator>& AllGenerators();

// The whole trace, everything freed at its end. It has at least `ops` operations and overshoots by
// no more than what must end together (a step, a sawtooth's tooth, the blocks still live).
std::string Generate(const Generator& generator, std::size_t ops, std::uint64_t seed);

// Sizes without a model behind them (synthetic.cc).
void LogUniformAtFullHouse(std::size_t ops, Random* random, TraceWriter* out);
void GrowingCaches(std::size_t ops, Random* random, TraceWriter* out);
void TwoAlternatingModels(std::size_t ops, Random* random, TraceWriter* out);
void Sawtooth(std::size_t ops, Random* random, TraceWriter* out);
void Mixed(std::size_t ops, Random* random, TraceWriter* out);

// Sizes as the layers of a network have them (networks.cc).
void EagerDecoding(std::size_t ops, Random* random, TraceWriter* out);
void UnetOfVaryingImages(std::size_t ops, Random* random, TraceWriter* out);

}  // namespace thimble::workloads
