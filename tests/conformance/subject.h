// The drivers that must all behave the same, and the fixture the conformance tests share.
//
// A test of this folder is written once against Driver and runs on every subject. It may use 256
// granules of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "allocator/driver/driver.h"
#include "gtest/gtest.h"

namespace thimble {

// A driver and everything that it needs.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Driver& driver() = 0;

  // A second handle for a chunk, as an importer holds (R8).
  virtual absl::StatusOr<ChunkHandle> Share(ChunkHandle chunk) = 0;

  // Streams by number; 0 is the default one, and there are kSubjectStreams.
  virtual StreamId Stream(int number) { return StreamId{static_cast<std::uint64_t>(number)}; }

  // Whether this process can touch what the driver maps, or only Copy() reaches it.
  virtual bool memory_is_here() const { return true; }

  // Work submitted to `stream` from now on does not finish before it is released. Only subjects of
  // HoldingSubjects() can; on the others nothing is ever pending.
  virtual void HoldStream(StreamId stream);
  virtual void ReleaseStream(StreamId stream);
};

struct SubjectKind {
  const char* name;
  std::unique_ptr<Subject> (*make)();
};

// Host at two granularities, CUDA over the simulated libcuda, and each wrapper around the host.
std::vector<SubjectKind> AllSubjects();
std::vector<SubjectKind> HoldingSubjects();

inline constexpr Bytes kSubjectGranules = 256;
inline constexpr int kSubjectStreams = 4;

// gtest prints the parameter of a failing test with this.
inline void PrintTo(const SubjectKind& kind, std::ostream* out) { *out << kind.name; }
inline std::string SubjectName(const testing::TestParamInfo<SubjectKind>& info) {
  return info.param.name;
}

// Checks the meaning of a status to a caller, with the message in the failure.
testing::AssertionResult HasCode(const absl::Status& status, absl::StatusCode code);
inline testing::AssertionResult Succeeds(const absl::Status& status) {
  return HasCode(status, absl::StatusCode::kOk);
}
inline testing::AssertionResult IsRefused(const absl::Status& status) {
  return HasCode(status, absl::StatusCode::kInvalidArgument);
}
inline testing::AssertionResult IsExhausted(const absl::Status& status) {
  return HasCode(status, absl::StatusCode::kResourceExhausted);
}
template <typename T>
testing::AssertionResult Succeeds(const absl::StatusOr<T>& result) {
  return Succeeds(result.status());
}
template <typename T>
testing::AssertionResult IsRefused(const absl::StatusOr<T>& result) {
  return IsRefused(result.status());
}
template <typename T>
testing::AssertionResult IsExhausted(const absl::StatusOr<T>& result) {
  return IsExhausted(result.status());
}

class DriverConformance : public testing::TestWithParam<SubjectKind> {
 protected:
  DriverConformance()
      : subject_(GetParam().make()),
        driver_(subject_->driver()),
        granule_(driver_.properties().granularity) {}

  // For the set-up of a test. Sizes in granules.
  Address Reserve(Bytes granules);
  ChunkHandle Create(Bytes granules = 1);
  // A new chunk at `address`, readable and writable; the handle is already destroyed (R7).
  void Back(Address address, Bytes granules = 1);
  Bytes FreeBytes();

  // Driver calls for single granules, which most tests use.
  absl::Status Map(Address address, ChunkHandle chunk) {
    return driver_.Map(address, granule_, chunk);
  }
  absl::Status Unmap(Address address) { return driver_.Unmap(address, granule_); }
  absl::Status SetAccess(Address address) { return driver_.SetAccess(address, granule_); }

  // One byte of device memory, which must be usable.
  std::uint8_t Peek(Address address);
  void Poke(Address address, std::uint8_t value);
  // Touches device memory; the touch may fault.
  static void Touch(Address address) {
    *static_cast<volatile std::uint8_t*>(ToPointer(address)) = 1;
  }

  const std::unique_ptr<Subject> subject_;
  Driver& driver_;
  const Bytes granule_;
};

}  // namespace thimble
