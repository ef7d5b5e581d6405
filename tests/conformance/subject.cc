#include "tests/conformance/subject.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/driver/cuda_driver.h"
#include "allocator/driver/host_driver.h"
#include "tests/conformance/simulated_cuda.h"
#include "tests/drivers/cost_driver.h"
#include "tests/drivers/delay_driver.h"
#include "tests/drivers/fault_driver.h"

namespace thimble {
namespace {

constexpr Bytes kSmallGranule = 4 * kKiB;

class HostSubject : public Subject {
 public:
  explicit HostSubject(Bytes granularity) {
    HostOptions options;
    options.granularity = granularity;
    options.total_bytes = kSubjectGranules * granularity;
    host_ = HostDriver::Open(options).value();
  }
  Driver& driver() override { return *host_; }
  absl::StatusOr<ChunkHandle> Share(ChunkHandle chunk) override { return host_->Share(chunk); }

 private:
  std::unique_ptr<HostDriver> host_;
};

// A wrapper around the host driver. Arguments go to the wrapper's constructor.
template <typename Wrapper>
class WrappedSubject : public HostSubject {
 public:
  template <typename... Arguments>
  explicit WrappedSubject(Arguments... arguments)
      : HostSubject(kSmallGranule), wrapper_(HostSubject::driver(), arguments...) {}
  Driver& driver() override { return wrapper_; }

 protected:
  Wrapper& wrapper() { return wrapper_; }

 private:
  Wrapper wrapper_;
};

class DelaySubject : public WrappedSubject<DelayDriver> {
 public:
  using WrappedSubject::WrappedSubject;
  void HoldStream(StreamId stream) override { wrapper().HoldStream(stream); }
  void ReleaseStream(StreamId stream) override { wrapper().ReleaseStream(stream); }
};

class CudaSubject : public Subject {
 public:
  CudaSubject() {
    cuda_library_.Restart(
        absl::StrCat("granularity:", kSmallGranule, ",memory:", kSubjectGranules * kSmallGranule));
    CudaOptions options;
    options.library = kSimulatedLibcuda;
    options.shareable = true;
    cuda_ = CudaDriver::Open(options).value();
    for (int i = 1; i < kSubjectStreams; ++i) streams_.push_back(cuda_library_.NewStream());
  }
  Driver& driver() override { return *cuda_; }
  absl::StatusOr<ChunkHandle> Share(ChunkHandle chunk) override {
    THIMBLE_ASSIGN_OR_RETURN(const int descriptor, cuda_->Export(chunk));
    absl::StatusOr<ChunkHandle> imported = cuda_->Import(descriptor);
    close(descriptor);
    return imported;
  }
  StreamId Stream(int number) override { return streams_[static_cast<std::size_t>(number)]; }
  bool memory_is_here() const override { return false; }
  void HoldStream(StreamId stream) override { cuda_library_.Hold(stream); }
  void ReleaseStream(StreamId stream) override { cuda_library_.Release(stream); }

 private:
  SimulatedCuda cuda_library_;
  std::unique_ptr<CudaDriver> cuda_;
  std::vector<StreamId> streams_ = {StreamId{}};
};

std::unique_ptr<Subject> MakeHost4KiB() { return std::make_unique<HostSubject>(kSmallGranule); }
std::unique_ptr<Subject> MakeHost2MiB() { return std::make_unique<HostSubject>(2 * kMiB); }
std::unique_ptr<Subject> MakeCuda() { return std::make_unique<CudaSubject>(); }
std::unique_ptr<Subject> MakeFault() { return std::make_unique<WrappedSubject<FaultDriver>>(); }
std::unique_ptr<Subject> MakeCost() { return std::make_unique<WrappedSubject<CostDriver>>(); }
std::unique_ptr<Subject> MakeDelay() {
  DelayOptions options;
  options.max_us = 1;  // the suite makes many thousand calls
  return std::make_unique<DelaySubject>(options);
}

}  // namespace

void Subject::HoldStream(StreamId /*stream*/) { ADD_FAILURE() << "this subject cannot hold"; }
void Subject::ReleaseStream(StreamId /*stream*/) { ADD_FAILURE() << "this subject cannot hold"; }

std::vector<SubjectKind> AllSubjects() {
  return {
      {"Host4KiB", MakeHost4KiB}, {"Host2MiB", MakeHost2MiB}, {"CudaOverSimulator", MakeCuda},
      {"FaultOff", MakeFault},    {"Delay", MakeDelay},       {"Cost", MakeCost},
  };
}

std::vector<SubjectKind> HoldingSubjects() {
  return {{"CudaOverSimulator", MakeCuda}, {"Delay", MakeDelay}};
}

testing::AssertionResult HasCode(const absl::Status& status, absl::StatusCode code) {
  if (status.code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "got " << status << ", not " << absl::StatusCodeToString(code);
}

Address DriverConformance::Reserve(Bytes granules) {
  const absl::StatusOr<Address> address = driver_.Reserve(granules * granule_, granule_);
  EXPECT_TRUE(Succeeds(address));
  return address.value_or(Address());
}

ChunkHandle DriverConformance::Create(Bytes granules) {
  const absl::StatusOr<ChunkHandle> chunk = driver_.Create(granules * granule_);
  EXPECT_TRUE(Succeeds(chunk));
  return chunk.value_or(ChunkHandle{});
}

void DriverConformance::Back(Address address, Bytes granules) {
  const ChunkHandle chunk = Create(granules);
  ASSERT_TRUE(Succeeds(driver_.Map(address, granules * granule_, chunk)));
  ASSERT_TRUE(Succeeds(driver_.SetAccess(address, granules * granule_)));
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunk)));
}

std::uint8_t DriverConformance::Peek(Address address) {
  if (subject_->memory_is_here()) return *static_cast<volatile std::uint8_t*>(ToPointer(address));
  std::uint8_t value = 0;
  EXPECT_TRUE(Succeeds(driver_.Copy(address, &value, 1, CopyDirection::kToHost)));
  return value;
}

void DriverConformance::Poke(Address address, std::uint8_t value) {
  if (subject_->memory_is_here()) {
    *static_cast<volatile std::uint8_t*>(ToPointer(address)) = value;
  } else {
    EXPECT_TRUE(Succeeds(driver_.Copy(address, &value, 1, CopyDirection::kToDevice)));
  }
}

Bytes DriverConformance::FreeBytes() {
  const absl::StatusOr<MemoryInfo> info = driver_.GetMemoryInfo();
  EXPECT_TRUE(Succeeds(info));
  return info.value_or(MemoryInfo{}).free_bytes;
}

}  // namespace thimble
