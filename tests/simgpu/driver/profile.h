// The few numbers that make a GPU's speed. README.md says where the built-in ones come from.
//
// A profile as text has a line "NAME VALUE" for every field, in any order; # begins a comment.
#pragma once

#include <string>

namespace simgpu {

// What a matrix product computes with.
enum class Math { kFp64, kFp32, kTf32, kHalf, kByte };

struct Profile {
  // Peaks in 10^12 operations per second. Those of the units for matrices (tensor cores) are 0 if
  // the GPU has none for that arithmetic.
  double fp64_tflops = 0;
  double fp32_tflops = 0;
  double tf32_tflops = 0;
  double half_tflops = 0;  // fp16 and bf16
  double byte_tflops = 0;  // fp8 and int8
  // The share of a peak that products and convolutions of usual sizes reach.
  double simd_efficiency = 0;    // of fp64 and fp32
  double tensor_efficiency = 0;  // of the others

  double memory_gbps = 0;  // 10^9 bytes per second
  double memory_efficiency = 0;
  double bus_in_gbps = 0;  // to the device, from pinned memory
  double bus_in_us = 0;    // latency
  double bus_out_gbps = 0;
  double bus_out_us = 0;
  double pageable_gbps = 0;  // both ways
  double nvlink_gbps = 0;    // each way, between GPUs that are linked; 0: it has none
  double launch_us = 0;      // before a kernel begins

  // What calls cost the thread that makes them.
  double reserve_us = 0;
  double create_us = 0;
  double map_us = 0;
  double set_access_us = 0;  // for each mapping that the call covers
  double unmap_us = 0;
  double alloc_us = 0;
  double alloc_us_per_mib = 0;
  double free_us = 0;

  // Operations per second, efficiency included: in the units for matrices (0: there are none), and
  // in those for numbers.
  double TensorPeak(Math math) const;
  double SimdPeak(Math math) const;
};

// The profile with a built-in name, or in the file at a path. False, and `error` says what is wrong
// and what would be right.
bool FindProfile(const std::string& name_or_path, Profile* profile, std::string* error);

// `source` is what messages call the text.
bool ParseProfile(const std::string& text, const std::string& source, Profile* profile,
                  std::string* error);

}  // namespace simgpu
