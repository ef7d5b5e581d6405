#include <algorithm>
#include <array>

#include "tests/workloads/generators.h"

namespace thimble::workloads {
namespace {

using Blocks = std::vector<std::uint32_t>;

std::uint32_t TakeAny(Blocks* blocks, Random* random) {
  const std::size_t index = random->Index(blocks->size());
  const std::uint32_t id = (*blocks)[index];
  (*blocks)[index] = blocks->back();
  blocks->pop_back();
  return id;
}

}  // namespace

void LogUniformAtFullHouse(std::size_t ops, Random* random, TraceWriter* out) {
  constexpr Bytes kHouse = 40 * kGiB / 100 * 95;
  Blocks live;
  while (out->ops() < ops) {
    const Bytes bytes = random->LogUniform(256, kGiB);
    while (out->live_bytes() + bytes > kHouse) out->Free(TakeAny(&live, random));
    live.push_back(out->Allocate(bytes));
  }
}

void GrowingCaches(std::size_t ops, Random* random, TraceWriter* out) {
  constexpr Bytes kHouse = 24 * kGiB;
  constexpr Bytes kAdmitBelow = kHouse / 10 * 8;
  constexpr std::size_t kCaches = 64;
  struct Cache {
    std::uint32_t id;
    Bytes last_bytes;  // it ends before it would grow beyond
  };
  std::vector<Cache> caches;
  while (out->ops() < ops) {
    if (caches.size() < kCaches && out->live_bytes() < kAdmitBelow) {
      const Bytes bytes = random->LogUniform(kMiB, 64 * kMiB);
      const double growth = random->Uniform(2, 12);
      caches.push_back(
          {out->Allocate(bytes), static_cast<Bytes>(static_cast<double>(bytes) * growth)});
      continue;
    }
    const std::size_t index = random->Index(caches.size());
    Cache& cache = caches[index];
    const Bytes grown = out->bytes_of(cache.id) / 4 * 5;
    if (grown > cache.last_bytes || out->live_bytes() + grown > kHouse) {
      out->Free(cache.id);
      cache = caches.back();
      caches.pop_back();
      continue;
    }
    // The old block is copied to the new one, so both are live for a moment.
    const std::uint32_t larger = out->Allocate(grown);
    out->Free(cache.id);
    cache.id = larger;
  }
}

void TwoAlternatingModels(std::size_t ops, Random* random, TraceWriter* out) {
  constexpr int kWeights = 400;
  constexpr int kLayers = 150;
  constexpr int kStepsPerSwap = 10;  // now and then a weight is allocated anew
  Blocks weights;
  for (int i = 0; i < kWeights; ++i) {
    weights.push_back(out->Allocate(random->LogUniform(kMiB, 32 * kMiB)));
  }
  std::array<std::vector<Bytes>, 2> models;
  for (int i = 0; i < kLayers; ++i) {
    models[0].push_back(random->LogUniform(4 * kMiB, 200 * kMiB));
    models[1].push_back(random->LogUniform(kMiB, 400 * kMiB));
  }
  for (int step = 0; out->ops() < ops; ++step) {
    out->Step();
    Blocks activations;
    for (const Bytes bytes : models[static_cast<std::size_t>(step % 2)]) {
      activations.push_back(out->Allocate(bytes));
      out->Free(out->Allocate(bytes / 2 + 256));  // a workspace
    }
    if (step % kStepsPerSwap == kStepsPerSwap - 1) {
      std::uint32_t& weight = weights[random->Index(weights.size())];
      const Bytes bytes = out->bytes_of(weight);
      out->Free(weight);
      weight = out->Allocate(bytes);
    }
    while (!activations.empty()) {
      out->Free(activations.back());
      activations.pop_back();
      if (!activations.empty()) out->Free(out->Allocate(out->bytes_of(activations.back())));
    }
  }
}

void Sawtooth(std::size_t ops, Random* /*random*/, TraceWriter* out) {
  constexpr Bytes kHouse = 16 * kGiB;
  constexpr double kFirst = 3e6;
  constexpr double kLast = 8e8;
  constexpr double kRatio = 1.37;
  constexpr std::size_t kMostKept = 400;
  Blocks live;
  double size = kFirst;
  while (out->ops() < ops) {
    const Bytes bytes = static_cast<Bytes>(size);
    while (out->live_bytes() + bytes <= kHouse) live.push_back(out->Allocate(bytes));
    Blocks kept;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(live[i]);
      } else {
        out->Free(live[i]);
      }
    }
    // Frees old teeth, which would otherwise accumulate.
    const std::size_t gone = kept.size() > kMostKept ? kept.size() / 2 : 0;
    for (std::size_t i = 0; i < gone; ++i) out->Free(kept[i]);
    live.assign(kept.begin() + static_cast<std::ptrdiff_t>(gone), kept.end());
    size = size * kRatio < kLast ? size * kRatio : kFirst;
  }
}

void Mixed(std::size_t ops, Random* random, TraceWriter* out) {
  constexpr std::size_t kLive = 1000;
  constexpr Bytes kHouse = 8 * kGiB;
  Blocks live;
  while (out->ops() < ops) {
    const double kind = random->Uniform(0, 1);
    const Bytes bytes = kind < 0.70   ? random->LogUniform(256, 64 * kKiB)
                        : kind < 0.95 ? random->LogUniform(64 * kKiB, 8 * kMiB)
                                      : random->LogUniform(8 * kMiB, 256 * kMiB);
    while (live.size() >= kLive || out->live_bytes() + bytes > kHouse) {
      out->Free(TakeAny(&live, random));
    }
    live.push_back(out->Allocate(bytes));
  }
}

}  // namespace thimble::workloads
