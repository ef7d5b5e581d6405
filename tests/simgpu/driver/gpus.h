// The built-in profiles, as a user would write them. Peaks, bandwidths of memory and NVLink are
// those of NVIDIA's data sheets; efficiencies were chosen once, so that the programs of the
// calibration come out right (README.md).
#pragma once

namespace simgpu {

struct BuiltInGpu {
  const char* name;
  const char* profile;
};

inline constexpr BuiltInGpu kBuiltInGpus[] = {
    {"a100", R"(# NVIDIA A100 SXM4 80 GB, PCIe 4.0
fp64_tflops 19.5
fp32_tflops 19.5
tf32_tflops 156
half_tflops 312
byte_tflops 624
simd_efficiency 0.85
tensor_efficiency 0.65
memory_gbps 2039
memory_efficiency 0.88
bus_in_gbps 25
bus_in_us 9.7
bus_out_gbps 25
bus_out_us 9.7
pageable_gbps 9
nvlink_gbps 300
launch_us 2.5
)"},
    {"h100", R"(# NVIDIA H100 SXM5 80 GB, PCIe 5.0
fp64_tflops 67
fp32_tflops 67
tf32_tflops 494
half_tflops 989
byte_tflops 1979
simd_efficiency 0.75
tensor_efficiency 0.5
memory_gbps 3350
memory_efficiency 0.88
bus_in_gbps 50
bus_in_us 9.7
bus_out_gbps 50
bus_out_us 9.7
pageable_gbps 12
nvlink_gbps 450
launch_us 2.5
)"},
    {"v100", R"(# NVIDIA V100 SXM2, PCIe 3.0
fp64_tflops 7.8
fp32_tflops 15.7
tf32_tflops 0
half_tflops 125
byte_tflops 0
simd_efficiency 0.9
tensor_efficiency 0.55
memory_gbps 900
memory_efficiency 0.93
bus_in_gbps 12.2
bus_in_us 9.7
bus_out_gbps 13.2
bus_out_us 47
pageable_gbps 6
nvlink_gbps 150
launch_us 3
)"},
    {"t4", R"(# NVIDIA T4, PCIe 3.0
fp64_tflops 0.254
fp32_tflops 8.1
tf32_tflops 0
half_tflops 65
byte_tflops 130
simd_efficiency 0.7
tensor_efficiency 0.4
memory_gbps 320
memory_efficiency 0.8
bus_in_gbps 12.2
bus_in_us 9.7
bus_out_gbps 13.2
bus_out_us 47
pageable_gbps 6
nvlink_gbps 0
launch_us 3
)"},
    {"gtx1080ti", R"(# NVIDIA GTX 1080 Ti, PCIe 3.0 as AutoSwap measured it
fp64_tflops 0.354
fp32_tflops 11.34
tf32_tflops 0
half_tflops 0
byte_tflops 0
simd_efficiency 0.85
tensor_efficiency 1
memory_gbps 484
memory_efficiency 0.8
bus_in_gbps 12.2
bus_in_us 9.7
bus_out_gbps 13.2
bus_out_us 47
pageable_gbps 6
nvlink_gbps 0
launch_us 3
)"},
};

// Published for an A100 only, with chunks of 2 MiB, and taken for all: as
// tests/drivers/cost_driver.h has them. An allocation of 2 GiB takes 1/115 of the time that it
// takes in such chunks (GMLake, table 1): 2 ms.
inline constexpr char kDriverPrices[] = R"(
reserve_us 19
create_us 193
map_us 1.5
set_access_us 36
unmap_us 26
alloc_us 10
alloc_us_per_mib 1
free_us 10
)";

}  // namespace simgpu
