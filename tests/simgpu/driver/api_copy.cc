// Copies and fills.
#include "tests/simgpu/driver/simulator.h"
#include "tests/simgpu/driver/transfer.h"

using simgpu::Address;
using simgpu::Box;
using simgpu::Call;
using simgpu::Extent;
using simgpu::Fill;
using simgpu::Outcome;
using simgpu::Simulator;
using simgpu::Work;

namespace {

template <typename T>
Address AddressOf(T pointer) {
  return reinterpret_cast<Address>(pointer);
}

// Without a stream: the call returns when it is done.
Outcome Now(const Work& work) {
  Simulator& simulator = Simulator::Get();
  const Outcome outcome = simulator.Start(nullptr, work);
  return outcome.ok() ? simulator.FindStream(nullptr)->Synchronize() : outcome;
}

// The ends of a copy that the caller calls device memory. Pinned memory is allowed there, other
// host memory is not.
struct Ends {
  bool to_device;
  bool from_device;
};
constexpr Ends kAny = {false, false};
constexpr Ends kToDevice = {true, false};
constexpr Ends kFromDevice = {false, true};
constexpr Ends kInside = {true, true};

Outcome CheckEnd(bool is_device, Address address, std::size_t bytes) {
  Simulator& simulator = Simulator::Get();
  if (!is_device || bytes == 0 || simulator.memory.Contains(address) ||
      simulator.host_memory.Knows(address)) {
    return simgpu::Success();
  }
  return simgpu::Illegal(CUDA_ERROR_INVALID_VALUE, simgpu::Hex(address) + " is no device memory");
}

Outcome CheckEnds(Ends ends, Address to, Address from, std::size_t bytes) {
  const Outcome outcome = CheckEnd(ends.to_device, to, bytes);
  return outcome.ok() ? CheckEnd(ends.from_device, from, bytes) : outcome;
}

CUresult CopyNow(const char* name, Ends ends, Address to, Address from, std::size_t bytes) {
  Call call(name, {{"to", to}, {"from", from}, {"size", bytes}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const Outcome outcome = CheckEnds(ends, to, from, bytes);
  if (!outcome.ok()) return call.Return(outcome);
  return call.Return(Now(simgpu::CopyWork(name, to, from, bytes)));
}

CUresult CopyOn(const char* name, Ends ends, Address to, Address from, std::size_t bytes,
                CUstream stream) {
  Call call(name, {{"to", to}, {"from", from}, {"size", bytes}, {"stream", stream}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const Outcome outcome = CheckEnds(ends, to, from, bytes);
  if (!outcome.ok()) return call.Return(outcome);
  return call.Return(simgpu::StartCopy(name, to, from, bytes, stream));
}

CUDA_MEMCPY3D Flat(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = copy.srcXInBytes;
  box.srcY = copy.srcY;
  box.srcMemoryType = copy.srcMemoryType;
  box.srcHost = copy.srcHost;
  box.srcDevice = copy.srcDevice;
  box.srcPitch = copy.srcPitch;
  box.dstXInBytes = copy.dstXInBytes;
  box.dstY = copy.dstY;
  box.dstMemoryType = copy.dstMemoryType;
  box.dstHost = copy.dstHost;
  box.dstDevice = copy.dstDevice;
  box.dstPitch = copy.dstPitch;
  box.WidthInBytes = copy.WidthInBytes;
  box.Height = copy.Height;
  box.Depth = 1;
  return box;
}

// `stream` null: the call returns when it is done.
CUresult CopyBox(const char* name, const CUDA_MEMCPY3D& copy, const CUstream* stream) {
  Call call(name, {{"width", copy.WidthInBytes}, {"height", copy.Height}, {"depth", copy.Depth}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Box to;
  Box from;
  Extent extent;
  const Outcome outcome = simgpu::DescribeCopy(copy, &to, &from, &extent);
  if (!outcome.ok()) return call.Return(outcome);
  const Work work = simgpu::CopyBoxWork(name, to, from, extent);
  return call.Return(stream == nullptr ? Now(work) : Simulator::Get().Start(*stream, work));
}

CUresult FillBox(const char* name, const Fill& fill, const CUstream* stream) {
  Call call(
      name,
      {{"pointer", fill.begin}, {"value", fill.value}, {"count", fill.count}, {"rows", fill.rows}},
      Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const Work work = simgpu::FillWork(name, fill);
  return call.Return(stream == nullptr ? Now(work) : Simulator::Get().Start(*stream, work));
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return CopyNow("cuMemcpy", kAny, to, from, bytes);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return CopyNow("cuMemcpyHtoD", kToDevice, to, AddressOf(from), bytes);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return CopyNow("cuMemcpyDtoH", kFromDevice, AddressOf(to), from, bytes);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return CopyNow("cuMemcpyDtoD", kInside, to, from, bytes);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes) {
  return CopyNow("cuMemcpyPeer", kInside, to, from, bytes);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return CopyOn("cuMemcpyAsync", kAny, to, from, bytes, stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return CopyOn("cuMemcpyHtoDAsync", kToDevice, to, AddressOf(from), bytes, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return CopyOn("cuMemcpyDtoHAsync", kFromDevice, AddressOf(to), from, bytes, stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return CopyOn("cuMemcpyDtoDAsync", kInside, to, from, bytes, stream);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                           std::size_t bytes, CUstream stream) {
  return CopyOn("cuMemcpyPeerAsync", kInside, to, from, bytes, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return CopyBox("cuMemcpy2D", Flat(*copy), nullptr);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return CopyBox("cuMemcpy2DUnaligned", Flat(*copy), nullptr);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyBox("cuMemcpy2DAsync", Flat(*copy), &stream);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return CopyBox("cuMemcpy3D", *copy, nullptr); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return CopyBox("cuMemcpy3DAsync", *copy, &stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return FillBox("cuMemsetD8", {to, 0, value, 1, count, 1}, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return FillBox("cuMemsetD16", {to, 0, value, 2, count, 1}, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, std::size_t count) {
  return FillBox("cuMemsetD32", {to, 0, value, 4, count, 1}, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return FillBox("cuMemsetD8Async", {to, 0, value, 1, count, 1}, &stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return FillBox("cuMemsetD16Async", {to, 0, value, 2, count, 1}, &stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return FillBox("cuMemsetD32Async", {to, 0, value, 4, count, 1}, &stream);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height) {
  return FillBox("cuMemsetD2D8", {to, pitch, value, 1, width, height}, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value,
                          std::size_t width, std::size_t height) {
  return FillBox("cuMemsetD2D16", {to, pitch, value, 2, width, height}, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width,
                          std::size_t height) {
  return FillBox("cuMemsetD2D32", {to, pitch, value, 4, width, height}, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return FillBox("cuMemsetD2D8Async", {to, pitch, value, 1, width, height}, &stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return FillBox("cuMemsetD2D16Async", {to, pitch, value, 2, width, height}, &stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned int value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return FillBox("cuMemsetD2D32Async", {to, pitch, value, 4, width, height}, &stream);
}

}  // extern "C"
