#include "tests/workloads/generators.h"

#include <utility>

namespace thimble::workloads {

const std::vector<Generator>& AllGenerators() {
  static const auto* const kAll = new std::vector<Generator>{
      {"loguniform", "256 B to 1 GiB, log-uniform, 95 % of 40 GiB live, freed at random", 24000,
       LogUniformAtFullHouse},
      {"kvgrow", "64 caches of 1 MiB to 768 MiB, each growing by a quarter at a time", 20000,
       GrowingCaches},
      {"twomodels", "two training steps of different shape take turns", 54000,
       TwoAlternatingModels},
      {"sawtooth", "16 GiB of equal blocks, every second one freed, then larger ones", 16000,
       Sawtooth},
      {"decode", "eager decoding for six users: many small tensors, growing KV caches", 128000,
       EagerDecoding},
      {"unet", "training of a U-Net on images of changing size", 40000, UnetOfVaryingImages},
      {"mixed", "all sizes, 1000 blocks live: the same load at any length", 100000, Mixed},
  };
  return *kAll;
}

std::string Generate(const Generator& generator, std::size_t ops, std::uint64_t seed) {
  Random random(seed);
  TraceWriter out;
  generator.run(ops, &random, &out);
  return std::move(out).Finish();
}

}  // namespace thimble::workloads
