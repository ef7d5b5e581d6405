#include "tests/race/crew.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace thimble {
namespace {

constexpr std::size_t kMostHeld = 48;  // by one thread

// A test that cannot even begin has nothing to report.
template <typename T>
T OrDie(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(3);
}

// One of the threads of a crew.
class Hand {
 public:
  explicit Hand(const Task& task) : task_(task), random_(task.seed) {}

  Tally Run() {
    while (tally_.operations < task_.operations) {
      ++tally_.operations;
      switch (random_.Index(8)) {
        case 0:
          Receive();
          break;
        case 1:
          Send();
          break;
        case 2:
          Look();
          break;
        case 3:
        case 4:
          if (!held_.empty()) Free(TakeAny());
          break;
        default:
          Allocate();
      }
    }
    while (!held_.empty()) Free(TakeAny());
    return tally_;
  }

 private:
  StreamId AnyStream() { return StreamId{random_.Index(task_.streams)}; }

  HeldBlock TakeAny() {
    std::swap(held_[random_.Index(held_.size())], held_.back());
    const HeldBlock block = held_.back();
    held_.pop_back();
    return block;
  }

  void Allocate() {
    if (held_.size() >= kMostHeld) return Free(TakeAny());
    Arena* const arena = task_.arenas[tally_.operations % task_.arenas.size()];
    const Bytes bytes = random_.LogUniform(1, task_.largest);
    const Bytes alignment = random_.Index(16) == 0 ? kGranule : 0;
    const auto address = arena->Allocate({bytes, alignment, AnyStream(), task_.seed});
    if (address.ok()) {
      ++tally_.allocations;
      held_.push_back({arena, *address, bytes, task_.seed * 1000003 + tally_.operations});
      held_.back().Fill();
    } else if (absl::IsResourceExhausted(address.status())) {
      ++tally_.out_of_memory;
      while (held_.size() > kMostHeld / 4) Free(TakeAny());
    } else {
      ++tally_.refused;
    }
  }

  void Free(const HeldBlock& block) {
    ++tally_.frees;
    if (!block.IsIntact()) ++tally_.broken;
    if (!block.arena->Free(block.address, AnyStream()).ok()) ++tally_.refused;
  }

  void Look() {
    if (held_.empty()) return;
    const HeldBlock& block = held_[random_.Index(held_.size())];
    const auto info = block.arena->Query(block.address);
    if (!info.ok() || info->bytes < block.bytes) ++tally_.refused;
    if (!block.IsIntact()) ++tally_.broken;
  }

  void Send() {
    if (!held_.empty()) task_.mail->Send(TakeAny());
  }

  void Receive() {
    if (const std::optional<HeldBlock> block = task_.mail->Receive()) {
      ++tally_.received;
      Free(*block);
    }
  }

  const Task task_;
  workloads::Random random_;
  std::vector<HeldBlock> held_;
  Tally tally_;
};

// Calls visit(word, expected) for the places of `block` that carry its pattern.
template <typename Visit>
void ForEachPlace(const HeldBlock& block, Visit visit) {
  const Bytes step = std::max<Bytes>(block.bytes / 64, 512) & ~Bytes{7};
  for (Bytes at = 0; at + 8 <= block.bytes; at += step) {
    visit(static_cast<std::uint64_t*>(ToPointer(block.address + at)), block.pattern + at);
  }
  if (block.bytes >= 8) {
    const Bytes last = (block.bytes - 8) & ~Bytes{7};
    visit(static_cast<std::uint64_t*>(ToPointer(block.address + last)), block.pattern + last);
  }
}

}  // namespace

std::unique_ptr<HostDriver> OpenDevice(Bytes bytes) {
  HostOptions options;
  options.total_bytes = bytes;
  options.granularity = kGranule;
  return OrDie(HostDriver::Open(options));
}

std::unique_ptr<Arena> MakeArena(Driver* driver, const ArenaOptions& options) {
  ArenaOptions with_granule = options;
  with_granule.chunk_bytes = kGranule;
  return OrDie(Arena::Create(with_granule, driver));
}

void HeldBlock::Fill() const {
  ForEachPlace(*this, [](std::uint64_t* word, std::uint64_t value) { *word = value; });
}

bool HeldBlock::IsIntact() const {
  bool intact = true;
  ForEachPlace(*this, [&](const std::uint64_t* word, std::uint64_t value) {
    intact = intact && *word == value;
  });
  return intact;
}

void Mail::Send(const HeldBlock& block) {
  MutexLock lock(&mutex_);
  blocks_.push_back(block);
}

std::optional<HeldBlock> Mail::Receive() {
  MutexLock lock(&mutex_);
  if (blocks_.empty()) return std::nullopt;
  const HeldBlock block = blocks_.back();
  blocks_.pop_back();
  return block;
}

Tally& Tally::operator+=(const Tally& other) {
  operations += other.operations;
  allocations += other.allocations;
  frees += other.frees;
  received += other.received;
  out_of_memory += other.out_of_memory;
  broken += other.broken;
  refused += other.refused;
  return *this;
}

Tally Perform(const Task& task) { return Hand(task).Run(); }

Tally PerformOnThreads(const Task& task, int threads, int generations) {
  std::vector<Tally> tallies(threads);
  std::vector<std::thread> crew;
  for (int i = 0; i < threads; ++i) {
    // Each place in the crew starts its next thread on its own, so that ends and starts interleave.
    crew.emplace_back([&, i] {
      for (int generation = 0; generation < generations; ++generation) {
        Task mine = task;
        mine.seed = task.seed + static_cast<std::uint64_t>(i + threads * generation);
        std::thread([&] { tallies[i] += Perform(mine); }).join();
      }
    });
  }
  Tally total;
  for (int i = 0; i < threads; ++i) {
    crew[i].join();
    total += tallies[i];
  }
  return total;
}

Tally EmptyMail(Mail* mail) {
  Tally tally;
  while (const std::optional<HeldBlock> block = mail->Receive()) {
    ++tally.frees;
    if (!block->IsIntact()) ++tally.broken;
    if (!block->arena->Free(block->address, StreamId{}).ok()) ++tally.refused;
  }
  return tally;
}

}  // namespace thimble
