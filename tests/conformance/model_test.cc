// Random calls, legal and illegal, against a model that shares nothing with any driver: it must
// predict, for every call, whether the driver accepts it, and know every byte. Runs on every
// driver.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/conformance/subject.h"

namespace thimble {
namespace {

constexpr int kSlots = 24;         // of the one reserved range, in granules
constexpr int kMaxChunkSlots = 3;  // chunks have 1 to 3 granules

struct ModelChunk {
  int size = 0;  // granules
  bool destroyed = false;
  std::uint8_t value = 0;  // what was last written to its first byte
};

// One array of slots instead of ordered maps: too simple to be wrong in the same way.
struct Model {
  struct Slot {
    int chunk = -1;  // index; -1: nothing mapped
    int part = 0;    // which granule of the chunk
    bool access = false;
  };
  std::vector<Slot> slots = std::vector<Slot>(kSlots);
  std::vector<ModelChunk> chunks;

  bool CanMap(int first, int size, int chunk) const {
    if (chunks[chunk].destroyed || chunks[chunk].size != size || first + size > kSlots) {
      return false;
    }
    return std::all_of(slots.begin() + first, slots.begin() + first + size,
                       [](const Slot& slot) { return slot.chunk < 0; });
  }
  bool IsWholeMapping(int first, int size) const {
    if (first + size > kSlots || slots[first].chunk < 0 || slots[first].part != 0) return false;
    return chunks[slots[first].chunk].size == size;
  }
  bool CanSetAccess(int first, int size) const {
    if (first + size > kSlots) return false;
    int at = first;
    while (at < first + size) {
      if (slots[at].chunk < 0 || slots[at].part != 0) return false;
      at += chunks[slots[at].chunk].size;
    }
    return at == first + size;
  }
  bool IsAlive(int chunk) const {
    return !chunks[chunk].destroyed ||
           std::any_of(slots.begin(), slots.end(),
                       [chunk](const Slot& slot) { return slot.chunk == chunk; });
  }
  Bytes LiveGranules() const {
    Bytes sum = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (IsAlive(static_cast<int>(i))) sum += chunks[i].size;
    }
    return sum;
  }
};

class DriverModel : public DriverConformance {
 protected:
  void SetUp() override { base_ = Reserve(kSlots); }

  int Draw(int bound) { return static_cast<int>(random_() % bound); }
  Address SlotAddress(int slot) const { return base_ + slot * granule_; }

  testing::AssertionResult Agrees(const absl::Status& status, bool legal) {
    ++(legal ? accepted_ : refused_);
    if (status.ok() == legal) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "the model says " << legal << ", the driver " << status;
  }

  void TryCreate() {
    const int size = 1 + Draw(kMaxChunkSlots);
    const bool fits = model_.LiveGranules() + size <= kSubjectGranules;
    const absl::StatusOr<ChunkHandle> chunk = driver_.Create(size * granule_);
    ASSERT_TRUE(Agrees(chunk.status(), fits));
    if (!chunk.ok()) return;
    handles_.push_back(*chunk);
    model_.chunks.push_back({size});
  }

  void TryDestroy(int chunk) {
    ASSERT_TRUE(Agrees(driver_.Destroy(handles_[chunk]), !model_.chunks[chunk].destroyed));
    model_.chunks[chunk].destroyed = true;
  }

  void TryMap(int first, int size, int chunk) {
    const bool legal = model_.CanMap(first, size, chunk);
    const absl::Status status = driver_.Map(SlotAddress(first), size * granule_, handles_[chunk]);
    ASSERT_TRUE(Agrees(status, legal));
    if (!legal) return;
    for (int part = 0; part < size; ++part) model_.slots[first + part] = {chunk, part, false};
  }

  void TryUnmap(int first, int size) {
    const bool legal = model_.IsWholeMapping(first, size);
    const absl::Status status = driver_.Unmap(SlotAddress(first), size * granule_);
    ASSERT_TRUE(Agrees(status, legal));
    if (!legal) return;
    for (int part = 0; part < size; ++part) model_.slots[first + part] = {};
  }

  void TrySetAccess(int first, int size) {
    const bool legal = model_.CanSetAccess(first, size);
    const absl::Status status = driver_.SetAccess(SlotAddress(first), size * granule_);
    ASSERT_TRUE(Agrees(status, legal));
    for (int part = 0; legal && part < size; ++part) model_.slots[first + part].access = true;
  }

  // Writes through one mapping; every mapping must show it.
  void TryWrite(int slot) {
    std::uint8_t value = static_cast<std::uint8_t>(1 + Draw(255));
    const Model::Slot& where = model_.slots[slot];
    const bool legal = where.chunk >= 0 && where.access;
    const absl::Status status =
        driver_.Copy(SlotAddress(slot), &value, 1, CopyDirection::kToDevice);
    ASSERT_TRUE(Agrees(status, legal));
    if (legal && where.part == 0) model_.chunks[where.chunk].value = value;
  }

  void CheckContents() {
    for (int slot = 0; slot < kSlots; ++slot) {
      const Model::Slot& where = model_.slots[slot];
      if (where.chunk < 0 || !where.access || where.part != 0) continue;
      ASSERT_EQ(Peek(SlotAddress(slot)), model_.chunks[where.chunk].value) << "slot " << slot;
    }
    ASSERT_EQ(FreeBytes(), (kSubjectGranules - model_.LiveGranules()) * granule_);
  }

  void Step() {
    const int slot = Draw(kSlots);
    const int size = 1 + Draw(kMaxChunkSlots);
    if (handles_.empty() || Draw(8) == 0) return TryCreate();
    // One of the newest, so that not nearly all are destroyed.
    const int known = static_cast<int>(handles_.size());
    const int chunk = known - 1 - Draw(std::min(known, 16));
    // Half of the maps have the right size; otherwise nearly all would be refused.
    const int map_size = Draw(2) == 0 ? size : model_.chunks[chunk].size;
    switch (Draw(10)) {
      case 0:
        return TryDestroy(chunk);
      case 1:
      case 2:
      case 3:
        return TryMap(slot, map_size, chunk);
      case 4:
      case 5:
        return TryUnmap(slot, size);
      case 6:
      case 7:
        return TrySetAccess(slot, 1 + Draw(6));
      default:
        return TryWrite(slot);
    }
  }

  Address base_;
  std::mt19937_64 random_{20240901};
  Model model_;
  std::vector<ChunkHandle> handles_;
  int accepted_ = 0;
  int refused_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All, DriverModel, testing::ValuesIn(AllSubjects()), SubjectName);

TEST_P(DriverModel, AcceptsAndRefusesWhatTheModelForesees) {
  for (int step = 0; step < 20'000; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    ASSERT_NO_FATAL_FAILURE(Step());
    if (step % 16 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(CheckContents());
  }
  EXPECT_GT(accepted_, 2'000) << "the test has become too easy";
  EXPECT_GT(refused_, 2'000) << "the test has become too easy";
}

}  // namespace
}  // namespace thimble
