// Generates traces that are hard on allocators. The same name, length and seed give the same trace.
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
  // Generates until `out` has at least `ops` operations; may leave blocks live.
  void (*run)(std::size_t ops, Random* random, TraceWriter* out);
};

const std::vector<Generator>& AllGenerators();

// The whole trace, everything freed at its end. It has at least `ops` operations, and more only to
// finish what belongs together (a step, a sawtooth's tooth, freeing live blocks).
std::string Generate(const Generator& generator, std::size_t ops, std::uint64_t seed);

// Made-up sizes (synthetic.cc).
void LogUniformAtFullHouse(std::size_t ops, Random* random, TraceWriter* out);
void GrowingCaches(std::size_t ops, Random* random, TraceWriter* out);
void TwoAlternatingModels(std::size_t ops, Random* random, TraceWriter* out);
void Sawtooth(std::size_t ops, Random* random, TraceWriter* out);
void Mixed(std::size_t ops, Random* random, TraceWriter* out);

// Sizes of the layers of networks (networks.cc).
void EagerDecoding(std::size_t ops, Random* random, TraceWriter* out);
void UnetOfVaryingImages(std::size_t ops, Random* random, TraceWriter* out);

}  // namespace thimble::workloads
