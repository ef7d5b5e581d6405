// Thimble and the policies it is compared with. Each peer's file says at its top what it was
// written from and where it is simpler than the original; every simplification is in the peer's
// favour.
//
// `driver` must outlive the policy. None of them is thread-safe, except BFC, which has its own
// lock.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/bench/policy.h"
#include "tests/bench/region_source.h"

namespace thimble {
class Driver;
}

namespace thimble::bench {

std::unique_ptr<Policy> MakeThimble(Driver& driver, bool plan);

// tsl::BFCAllocator of the stock TensorFlow wheel. `capacity` is its memory limit; without growth
// it takes all of that at the first request.
std::unique_ptr<Policy> MakeBfc(std::unique_ptr<RegionSource> regions, std::uint64_t capacity,
                                bool growth);

// NVIDIA CnMem. Without growth it takes the whole device at once.
std::unique_ptr<Policy> MakeCnmem(Driver& driver, bool growth);

// GMLake, a stitching allocator for PyTorch.
std::unique_ptr<Policy> MakeGmlake(Driver& driver);

// PyTorch's caching allocator with expandable segments.
std::unique_ptr<Policy> MakeExpandable(Driver& driver);

}  // namespace thimble::bench
