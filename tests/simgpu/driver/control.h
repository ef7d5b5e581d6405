// What the simulator offers beyond CUDA's interface, to the libraries beside it and to tests. Find
// these with dlsym() in the libcuda.so.1 that the program has loaded.
#pragma once

#include <stddef.h>

#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

// Checks a `pointer` that a library call got. If it is device memory that the current device may
// not use, returns CUDA_ERROR_ILLEGAL_ADDRESS and adds a line that names `who` to the list of
// illegal calls. Accepts everything that is not device memory. Also counts as a launch, see
// results.h.
CUresult simgpu_check(const void* pointer, const char* who);

// What a library asks the current device to do.
enum { simgpu_fp64, simgpu_fp32, simgpu_tf32, simgpu_half, simgpu_byte };  // see profile.h

typedef struct {
  const char* name;  // a literal
  CUstream stream;
  double flops;
  double simd_flops;  // without units for matrices; 0: as many
  int math;           // one of the above
  double bytes;       // of device memory that it reads and writes
  double link_bytes;  // that it exchanges with other devices
  const void* const* pointers;
  size_t pointer_count;
} simgpu_work;

// Does the work on its stream, or adds it to the graph that the stream captures. The pointers are
// checked as above.
CUresult simgpu_submit(const simgpu_work* work);

// What an allocator says of its blocks by NVTX, for those that cannot.
void simgpu_block_begin(CUdeviceptr pointer, size_t bytes);
void simgpu_block_end(CUdeviceptr pointer);

// Starts a new machine with `conf` as SIMGPU_CONF. All earlier handles and addresses become
// invalid.
void simgpu_restart(const char* conf);

// Sets the calls that fail from now on, see faults.h; "" for none. Ignores invalid text.
void simgpu_fault(const char* faults);

// From now on, illegal calls of this thread are on purpose: they fail as always, but are neither
// counted nor listed. 0: no longer.
void simgpu_provoke(int on);

// Sets the function that gets every call as a line; null for none.
void simgpu_watch(void (*line)(const char* text));

// Work on `stream` waits until it is resumed. False if it is not alive.
int simgpu_hold(CUstream stream);
int simgpu_resume(CUstream stream);

typedef struct {
  size_t total;
  size_t taken;   // by everything
  size_t peak;    // the most of it
  size_t plain;   // of it by cuMemAlloc
  size_t chunks;  // by cuMemCreate
  size_t pools;   // by memory pools, cached memory included
} simgpu_memory;

// Memory of the host.
typedef struct {
  size_t chunks;   // by cuMemCreate
  size_t peak;     // the most of it
  size_t managed;  // by cuMemAllocManaged, wherever its pages are
} simgpu_host;

// What a device has and had of managed memory.
typedef struct {
  size_t resident;
  size_t peak;
  size_t faults;
  size_t in;          // bytes that came to the device
  size_t prefetched;  // of them because the program asked for it
  size_t out;         // bytes that left it
} simgpu_pages;

// For how many seconds each engine of a device was busy, as the clock models it.
typedef struct {
  double compute;
  double in;
  double out;
} simgpu_times;

// Kinds of memory, in the order of Place (place.h).
enum { SIMGPU_DEVICE, SIMGPU_HOST_CHUNK, SIMGPU_MANAGED, SIMGPU_PINNED, SIMGPU_PAGEABLE };

typedef struct {
  size_t illegal_calls;
  size_t chunks;  // physical memory of cuMemCreate that something still refers to
  size_t mappings;
  size_t reservations;
  size_t events;
  size_t streams;
  size_t contexts;  // how often primary contexts are retained
} simgpu_counts;

// False if there is no such device.
int simgpu_get_memory(int device, simgpu_memory* memory);
void simgpu_get_counts(simgpu_counts* counts);
void simgpu_get_host(simgpu_host* host);
int simgpu_get_times(int device, simgpu_times* times);
int simgpu_get_pages(int device, simgpu_pages* pages);
// Bytes copied from one kind of memory to another.
size_t simgpu_get_traffic(int from, int to);

#ifdef __cplusplus
}
#endif
