// The containers in which compilers put a module for several GPUs, compressed by LZ4.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

bool IsFatBinary(const void* image);

// The ELF images for the best GPU up to `capability`, or for the least one if all need more. Empty
// if there is only PTX, or the container cannot be read.
std::vector<std::vector<char>> ReadFatBinary(const void* image, int capability);

// One LZ4 block of `bytes`. False if it does not become exactly as long as `out`.
bool DecompressLz4(const char* block, std::size_t bytes, std::vector<char>* out);

}  // namespace simgpu
