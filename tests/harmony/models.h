// Profiles and servers for tests.
#pragma once

#include <random>

#include "allocator/offline/harmony/profile.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

inline constexpr double kGiBBytes = 1024.0 * 1024 * 1024;

// The model of the published figures: an embedding, 96 equal layers, pooler, classifier, loss.
// Measured by the authors of Harmony on a GTX 1080 Ti; rounded to a tenth of a microsecond here.
Profile Bert96();

// Every layer takes `seconds` per sample forward and three times that backward, has `weight_bytes`
// an input of `input_bytes` per sample, and `work_bytes` of work memory per sample.
Profile EqualLayers(int layers, double seconds, double weight_bytes, double input_bytes,
                    double work_bytes);

// Thirteen layers that differ in everything and have buffers; microbatches of 12 were measured
// forward only.
Profile UnevenLayers();

// Layers that differ in everything, and a server with enough memory for each layer alone but only
// for few together.
Profile RandomProfile(std::mt19937& random);
Server RandomServer(std::mt19937& random, const Profile& profile, int batch);

}  // namespace thimble::harmony
