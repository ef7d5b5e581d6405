// The binary interface of the driver functions that the front serves.
//
// The front does not use cuda.h, because its macros rename functions that must be exported under
// their old names, and because the front builds without a toolkit. //tests/xla_plugin:cuda_abi_test
// compares every line with cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble::xla {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgreenCtx = struct CUgreenCtx_st*;

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kOutOfMemory = 2;
inline constexpr CUresult kNotInitialized = 3;
inline constexpr CUresult kDeviceUnavailable = 46;
inline constexpr CUresult kNotSupported = 801;
inline constexpr CUresult kUnknown = 999;

// CUdevice_attribute
inline constexpr int kVirtualMemorySupported = 102;
inline constexpr int kMemoryPoolsSupported = 115;

// CUmemPool_attribute: those with values of 64 bits.
inline constexpr int kReleaseThreshold = 4;
inline constexpr int kReservedCurrent = 5;
inline constexpr int kReservedHigh = 6;
inline constexpr int kUsedCurrent = 7;
inline constexpr int kUsedHigh = 8;

// CUpointer_attribute
inline constexpr int kIpcCapable = 10;
inline constexpr int kRangeStart = 11;
inline constexpr int kRangeSize = 12;
inline constexpr int kPoolHandle = 17;

// CUstream_flags, and streams that are not pointers.
inline constexpr unsigned kNonBlocking = 1;
inline constexpr std::uintptr_t kLegacyStream = 1;
inline constexpr std::uintptr_t kPerThreadStream = 2;

// CUstreamCaptureStatus
inline constexpr int kNotCapturing = 0;

// Flags of cuGetProcAddress.
inline constexpr std::uint64_t kPerThreadDefaultStream = 2;

struct CUmemLocation {
  int type;
  int id;
};
inline constexpr int kLocationDevice = 1;

struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
inline constexpr int kAccessReadWrite = 3;

struct CUipcMemHandle {
  char reserved[64];
};

}  // namespace thimble::xla
