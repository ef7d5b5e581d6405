/* What the front exports besides the driver's own functions: for the boot module, which opens and
 * starts it, and for programs that inspect the arenas. Plain C; thimble.h explains the arena. */
#ifndef THIMBLE_DRIVER_FRONT_H_
#define THIMBLE_DRIVER_FRONT_H_

#include <stddef.h>
#include <stdint.h>

#include "allocator/thimble.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when a signature or a meaning below changes. */
#define THIMBLE_FRONT_ABI_VERSION 2
uint32_t thimble_front_abi_version(void);

/* Opens the driver at `path`; from then on the front forwards all calls to it. Call this once,
 * before anyone else can find the front. Returns NULL, or what is wrong, valid until the next call.
 * */
const char* thimble_front_open(const char* path);

/* Lets arenas serve memory. `conf` is THIMBLE_CONF (NULL: empty), `memory_fraction` is the part of
 * a device that JAX may take (0: not set), and `preallocate` says whether to take it at once.
 * Returns NULL, or what is wrong, valid until the next call; then the driver keeps serving
 * everything. Call it from one thread. */
const char* thimble_front_start(const char* conf, double memory_fraction, int preallocate);

/* The part of a device's memory that its arena may take, the smallest of all devices. JAX's plugin
 * must use it as its limit. 0 if the front is off. */
double thimble_front_fraction(void);

/* The arena of the GPU with this number of the driver's; NULL if it has none (yet). It lives as
 * long as the process. */
thimble_arena* thimble_front_arena(int device);

/* Takes the report of the last request that did not fit on any GPU; each report can be taken once.
 * JAX's exception lacks it. Writes it to `buffer`, which has room for `bytes`, ends it with a 0 and
 * cuts it off if it is too long. Returns its length; 0 if there is none. */
size_t thimble_front_take_failure(char* buffer, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_DRIVER_FRONT_H_ */
