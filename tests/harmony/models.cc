#include "tests/harmony/models.h"

#include <algorithm>
#include <string>
#include <vector>

namespace thimble::harmony {
namespace {

struct Figures {
  double forward_us;
  double backward_us;
  double forward_bytes;
  double backward_bytes;
};

struct Kind {
  int count;
  Layer layer;
  Figures by_size[6];
};

constexpr int kSizes[] = {1, 2, 4, 8, 16, 32};
const Kind kBert[] = {
    {1,
     {127131648, 0.0985784125, 6144, 0},
     {{656.7, 4840.0, 142641152, 262189056},
      {879.5, 6598.9, 157335552, 268941312},
      {1211.1, 7363.6, 186724352, 281992192},
      {1795.8, 9055.9, 245501952, 308101632},
      {3050.8, 12810.8, 363057152, 430198784},
      {5572.3, 19097.0, 598167552, 732450816}}},
    {96,
     {50384896, 0.0241580482, 2099200, 0},
     {{4074.3, 17098.8, 96524288, 193009664},
      {6990.6, 23610.1, 142663680, 318844928},
      {11893.9, 35723.3, 234942464, 570515456},
      {20367.9, 62132.8, 419500032, 1073856512},
      {39980.6, 120847.1, 788615168, 2080538624},
      {78678.4, 240171.6, 1526845440, 4093902848}}},
    {1,
     {4198400, 0.0012680548, 2097152, 0},
     {{216.6, 1249.5, 6303744, 14696448},
      {207.0, 1295.4, 8409088, 20996096},
      {206.4, 1346.3, 12619776, 33595392},
      {212.4, 1523.7, 21041152, 58793984},
      {216.8, 1700.9, 37883904, 109191168},
      {217.6, 2070.8, 71569408, 209985536}}},
    {1,
     {8200, 0.0003624207, 4096, 0},
     {{136.6, 813.6, 13312, 26624},
      {134.3, 837.6, 17408, 34816},
      {136.6, 826.4, 25600, 51200},
      {141.7, 850.1, 41984, 83968},
      {144.6, 854.1, 74752, 149504},
      {145.5, 845.9, 140288, 280576}}},
    {1,
     {0, 0, 8, 0},
     {{128.3, 705.3, 2560, 3584},
      {128.9, 697.0, 2560, 3584},
      {128.2, 696.2, 2560, 3584},
      {129.5, 695.9, 2560, 3584},
      {128.2, 693.1, 2560, 3584},
      {130.1, 697.3, 2560, 3584}}},
};

void AddLayer(Profile& profile, std::size_t sample, double forward, double backward,
              double forward_bytes, double backward_bytes) {
  Sample& one = profile.samples[sample];
  one.forward_seconds.push_back(forward);
  one.backward_seconds.push_back(backward);
  one.forward_bytes.push_back(forward_bytes);
  one.backward_bytes.push_back(backward_bytes);
}

Profile WithSizes(const std::vector<int>& sizes) {
  Profile profile;
  for (const int size : sizes) {
    profile.samples.emplace_back();
    profile.samples.back().size = size;
  }
  return profile;
}

}  // namespace

Profile Bert96() {
  Profile profile = WithSizes({std::begin(kSizes), std::end(kSizes)});
  for (const Kind& kind : kBert) {
    for (int i = 0; i < kind.count; ++i) {
      profile.layers.push_back(kind.layer);
      for (std::size_t s = 0; s < std::size(kSizes); ++s) {
        const Figures& one = kind.by_size[s];
        AddLayer(profile, s, one.forward_us * 1e-6, one.backward_us * 1e-6, one.forward_bytes,
                 one.backward_bytes);
      }
    }
  }
  return profile;
}

Profile UnevenLayers() {
  constexpr double kMB = 1e6;
  Profile profile = WithSizes({1, 3, 8, 12});
  for (int i = 0; i < 13; ++i) {
    const Layer layer = {i * 7 % 5 * 30 * kMB, 0.002 * (1 + i % 4), (1 + i * 5 % 7) * 8 * kMB,
                         i % 3 * 4 * kMB};
    profile.layers.push_back(layer);
    const double work = (10 + i * 11 % 9 * 6) * kMB;
    for (std::size_t s = 0; s < profile.samples.size(); ++s) {
      const int size = profile.samples[s].size;
      const double seconds = 0.001 * (2 + i * 3 % 8) * (2 + size);
      const double bytes =
          layer.weight_bytes + layer.buffer_bytes + size * (layer.input_bytes + work);
      AddLayer(profile, s, seconds, 3 * seconds, bytes, bytes + layer.weight_bytes + size * work);
    }
  }
  profile.samples.back().backward_seconds.clear();
  profile.samples.back().backward_bytes.clear();
  return profile;
}

Profile EqualLayers(int layers, double seconds, double weight_bytes, double input_bytes,
                    double work_bytes) {
  Profile profile = WithSizes({1, 64});
  for (int layer = 0; layer < layers; ++layer) {
    profile.layers.push_back({weight_bytes, 0, input_bytes, 0});
    for (std::size_t s = 0; s < 2; ++s) {
      const int size = profile.samples[s].size;
      const double rest = size * (input_bytes + work_bytes);
      AddLayer(profile, s, seconds * size, 3 * seconds * size, weight_bytes + rest,
               2 * weight_bytes + rest);
    }
  }
  return profile;
}

Profile RandomProfile(std::mt19937& random) {
  const auto number = [&](double least, double most) {
    return least + (most - least) * (random() % 10007) / 10006.0;
  };
  const int layers = 1 + static_cast<int>(random() % 24);
  Profile profile = WithSizes({1, 3, 8, 40});
  for (int layer = 0; layer < layers; ++layer) {
    const Layer one = {random() % 5 == 0 ? 0 : number(1e6, 3e8), number(0, 0.05),
                       random() % 6 == 0 ? 0 : number(1e4, 4e7), 0};
    profile.layers.push_back(one);
    const double forward = number(1e-4, 0.02);
    const double work = number(0, 1e8);
    for (std::size_t s = 0; s < profile.samples.size(); ++s) {
      const int size = profile.samples[s].size;
      const double time = forward * (2 + size);
      const double bytes = size * (one.input_bytes + work);
      AddLayer(profile, s, time, time * number(1, 4), one.weight_bytes + bytes * number(0.3, 1),
               2 * one.weight_bytes + bytes * number(1, 3));
    }
  }
  return profile;
}

Server RandomServer(std::mt19937& random, const Profile& profile, int batch) {
  const int gpus = 1 + static_cast<int>(random() % 4);
  double most = 0;
  for (std::size_t layer = 0; layer < profile.layers.size(); ++layer) {
    const double input = profile.layers[layer].input_bytes;
    const double next =
        layer + 1 < profile.layers.size() ? profile.layers[layer + 1].input_bytes : 0;
    most = std::max(most, profile.samples[0].backward_bytes[layer] + 4 * input + 4 * next +
                              2 * profile.layers[layer].weight_bytes);
  }
  Server server = PublishedServer(gpus, most * (1 + random() % 30 / 10.0) + batch);
  if (random() % 2 == 0) {
    server.switches.push_back({"second", random() % 2 == 0 ? 0 : kHost, 6e9});
    for (int gpu = 0; gpu < gpus; ++gpu) {
      server.gpus[gpu] = {static_cast<int>(random() % 2), random() % 2 == 0 ? 0 : 9e9};
    }
    if (gpus > 1 && random() % 2 == 0) server.nvlinks.push_back({0, 1, 25e9});
    server.half_duplex = random() % 3 == 0;
  }
  return server;
}

}  // namespace thimble::harmony
