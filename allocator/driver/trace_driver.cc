#include "allocator/driver/trace_driver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/driver/driver_call.h"

namespace thimble {
namespace {

std::string Hexed(std::uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

std::string Place(Address address, Bytes bytes) {
  return absl::StrCat("address=", Hexed(address), ", bytes=", bytes);
}

std::string Point(StreamId stream, StreamSeq point) {
  return absl::StrCat("stream=", Hexed(static_cast<std::uint64_t>(stream)), ", point=", point);
}

std::string Line(DriverCall call, const std::string& arguments, const std::string& result) {
  return absl::StrCat(DriverCallName(call), "(", arguments, ") = ", result);
}

// The value as `show` puts it, or the error.
template <typename T, typename Show>
std::string Result(const absl::StatusOr<T>& result, Show show) {
  return result.ok() ? std::string(show(*result)) : result.status().ToString();
}

std::string Decimal(std::uint64_t value) { return absl::StrCat(value); }

}  // namespace

absl::StatusOr<Address> TraceDriver::Reserve(Bytes bytes, Bytes alignment) {
  absl::StatusOr<Address> result = base().Reserve(bytes, alignment);
  sink_(Line(DriverCall::kReserve, absl::StrCat("bytes=", bytes, ", alignment=", alignment),
             Result(result, Hexed)));
  return result;
}

absl::Status TraceDriver::Release(Address address, Bytes bytes) {
  absl::Status status = base().Release(address, bytes);
  sink_(Line(DriverCall::kRelease, Place(address, bytes), status.ToString()));
  return status;
}

absl::StatusOr<ChunkHandle> TraceDriver::Create(Bytes bytes) {
  absl::StatusOr<ChunkHandle> result = base().Create(bytes);
  sink_(Line(DriverCall::kCreate, absl::StrCat("bytes=", bytes),
             Result(result,
                    [](ChunkHandle chunk) { return Decimal(static_cast<std::uint64_t>(chunk)); })));
  return result;
}

absl::Status TraceDriver::Destroy(ChunkHandle chunk) {
  absl::Status status = base().Destroy(chunk);
  sink_(Line(DriverCall::kDestroy, absl::StrCat("chunk=", static_cast<std::uint64_t>(chunk)),
             status.ToString()));
  return status;
}

absl::Status TraceDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  absl::Status status = base().Map(address, bytes, chunk);
  sink_(Line(DriverCall::kMap,
             absl::StrCat(Place(address, bytes), ", chunk=", static_cast<std::uint64_t>(chunk)),
             status.ToString()));
  return status;
}

absl::Status TraceDriver::Unmap(Address address, Bytes bytes) {
  absl::Status status = base().Unmap(address, bytes);
  sink_(Line(DriverCall::kUnmap, Place(address, bytes), status.ToString()));
  return status;
}

absl::Status TraceDriver::SetAccess(Address address, Bytes bytes) {
  absl::Status status = base().SetAccess(address, bytes);
  sink_(Line(DriverCall::kSetAccess, Place(address, bytes), status.ToString()));
  return status;
}

absl::Status TraceDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  absl::Status status = base().Copy(device, host, bytes, direction);
  const char* const to = direction == CopyDirection::kToDevice ? "device" : "host";
  sink_(
      Line(DriverCall::kCopy, absl::StrCat(Place(device, bytes), ", to=", to), status.ToString()));
  return status;
}

absl::Status TraceDriver::PinHost(void* host, Bytes bytes) {
  absl::Status status = base().PinHost(host, bytes);
  sink_(Line(DriverCall::kPinHost, absl::StrCat("bytes=", bytes), status.ToString()));
  return status;
}

absl::Status TraceDriver::UnpinHost(void* host) {
  absl::Status status = base().UnpinHost(host);
  sink_(Line(DriverCall::kUnpinHost, "", status.ToString()));
  return status;
}

absl::StatusOr<StreamSeq> TraceDriver::Record(StreamId stream) {
  absl::StatusOr<StreamSeq> result = base().Record(stream);
  sink_(Line(DriverCall::kRecord,
             absl::StrCat("stream=", Hexed(static_cast<std::uint64_t>(stream))),
             Result(result, Decimal)));
  return result;
}

absl::StatusOr<bool> TraceDriver::Passed(StreamId stream, StreamSeq point) {
  absl::StatusOr<bool> result = base().Passed(stream, point);
  sink_(Line(DriverCall::kPassed, Point(stream, point),
             Result(result, [](bool passed) { return passed ? "yes" : "no"; })));
  return result;
}

absl::Status TraceDriver::Wait(StreamId stream, StreamSeq point) {
  absl::Status status = base().Wait(stream, point);
  sink_(Line(DriverCall::kWait, Point(stream, point), status.ToString()));
  return status;
}

absl::StatusOr<MemoryInfo> TraceDriver::GetMemoryInfo() {
  absl::StatusOr<MemoryInfo> result = base().GetMemoryInfo();
  sink_(Line(DriverCall::kGetMemoryInfo, "", Result(result, [](const MemoryInfo& info) {
               return absl::StrCat("free ", info.free_bytes, " of ", info.total_bytes);
             })));
  return result;
}

}  // namespace thimble
