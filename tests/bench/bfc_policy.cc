// BFC: the real tsl::BFCAllocator from the stock TensorFlow wheel, not a model of it.
//
// Options as TensorFlow sets them for a GPU: garbage collection of free regions on, fragmentation
// fraction 0. Retrying after a failure is off: with one thread it would only sleep. BFC knows one
// stream, so the streams of a trace share all memory without waiting, which is in its favour.
#include <cstddef>
#include <utility>

#include "absl/log/globals.h"
#include "tests/bench/peers.h"
#include "xla/tsl/framework/allocator.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace thimble::bench {
namespace {

class RegionSubAllocator final : public tsl::SubAllocator {
 public:
  explicit RegionSubAllocator(std::unique_ptr<RegionSource> regions)
      : SubAllocator({}, {}), regions_(std::move(regions)) {}

  void* Alloc(std::size_t /*alignment*/, std::size_t bytes, std::size_t* received) override {
    *received = bytes;
    return reinterpret_cast<void*>(regions_->Take(bytes));
  }
  void Free(void* region, std::size_t /*bytes*/) override {
    regions_->Give(reinterpret_cast<std::uint64_t>(region));
  }
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override {
    return tsl::AllocatorMemoryType::kDevice;
  }

 private:
  const std::unique_ptr<RegionSource> regions_;
};

tsl::BFCAllocator::Options GpuOptions(bool growth) {
  tsl::BFCAllocator::Options options;
  options.allow_growth = growth;
  options.allow_retry_on_failure = false;
  options.garbage_collection = true;
  return options;
}

class BfcPolicy final : public Policy {
 public:
  BfcPolicy(std::unique_ptr<RegionSource> regions, std::uint64_t capacity, bool growth)
      : bfc_(std::make_unique<RegionSubAllocator>(std::move(regions)), capacity, "bfc",
             GpuOptions(growth)) {}

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t /*stream*/,
                         std::uint64_t /*key*/) override {
    return reinterpret_cast<std::uint64_t>(
        bfc_.AllocateRaw(tsl::Allocator::kAllocatorAlignment, bytes, attributes_));
  }
  void Free(std::uint64_t address, std::uint64_t /*stream*/) override {
    bfc_.DeallocateRaw(reinterpret_cast<void*>(address));
  }

 private:
  const tsl::AllocationAttributes attributes_{/*retry_on_failure=*/false,
                                              /*allocation_will_be_logged=*/false,
                                              /*freed_by_func=*/nullptr};
  tsl::BFCAllocator bfc_;
};

}  // namespace

std::unique_ptr<Policy> MakeBfc(std::unique_ptr<RegionSource> regions, std::uint64_t capacity,
                                bool growth) {
  // Probes run out of memory on purpose, and BFC would write a report about each.
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
  return std::make_unique<BfcPolicy>(std::move(regions), capacity, growth);
}

}  // namespace thimble::bench
