// Thimble as its users run it: an Arena with default options, growing from empty; with plans or
// without.
#include <utility>

#include "allocator/arena/arena.h"
#include "allocator/base/check.h"
#include "tests/bench/peers.h"

namespace thimble::bench {
namespace {

class ThimblePolicy final : public Policy {
 public:
  explicit ThimblePolicy(std::unique_ptr<Arena> arena) : arena_(std::move(arena)) {}

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t stream, std::uint64_t key) override {
    const absl::StatusOr<Address> block =
        arena_->Allocate({bytes, /*alignment=*/0, StreamId{stream}, key, step_});
    return block.ok() ? block->value() : 0;
  }

  void Free(std::uint64_t address, std::uint64_t stream) override {
    THIMBLE_CHECK(arena_->Free(Address(address), StreamId{stream}).ok(),
                  "a block in use can be freed");
  }

  void BeginStep() override {
    ++step_;
    // A replay takes milliseconds: without waiting, it would be over before its first plan.
    arena_->WaitForPlans();
  }

 private:
  const std::unique_ptr<Arena> arena_;
  std::uint64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeThimble(Driver& driver, bool plan) {
  ArenaOptions options;
  options.plan = plan;
  absl::StatusOr<std::unique_ptr<Arena>> arena = Arena::Create(options, &driver);
  THIMBLE_CHECK(arena.ok(), "an arena with default options can be made");
  return std::make_unique<ThimblePolicy>(*std::move(arena));
}

}  // namespace thimble::bench
