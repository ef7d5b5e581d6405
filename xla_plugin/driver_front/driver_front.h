/* What the front exports besides the driver's own functions: for the boot module, which opens and
 * starts it, and for whoever wants to look at the arenas. Plain C; thimble.h explains the arena. */
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

/* Opens the driver at `path`; from here on all calls are forwarded to it. Once, before anybody else
 * can find the front. NULL, or what is wrong, valid until the next call. */
const char* thimble_front_open(const char* path);

/* Lets arenas serve memory. `conf` is THIMBLE_CONF (NULL: empty), `memory_fraction` what JAX was
 * told to take of a device (0: nothing was said), `preallocate` whether to take it at once. NULL,
 * or what is wrong, valid until the next call: then everything stays the driver's. One thread. */
const char* thimble_front_start(const char* conf, double memory_fraction, int preallocate);

/* The part of a device's memory that its arena may take, the smallest of all devices; JAX's plugin
 * shall count with it. 0 if the front is off. */
double thimble_front_fraction(void);

/* The arena of a GPU, by the driver's number of it; NULL if it has none (yet). It lives as long as
 * the process. */
thimble_arena* thimble_front_arena(int device);

/* The report of the last request that did not fit, on any GPU, and only once: what JAX raises says
 * nothing about it. Writes it to `buffer`, which has room for `bytes`, with a 0 at its end and cut
 * off where there is no more room. Returns its length; 0 if there is none. */
size_t thimble_front_take_failure(char* buffer, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_DRIVER_FRONT_H_ */
