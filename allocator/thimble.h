/* Thimble's C interface: one arena per device, plain C types only.
 *
 * It is what the TensorFlow plugin, the JAX front and Python (ctypes) talk to, so that no C++ type
 * crosses a library border. Rules that hold for every function:
 *   - It never throws, never exits and never prints. A failure is a status; thimble_last_error()
 *     says, on the same thread, which value was wrong and what to do.
 *   - A call that fails changes nothing.
 *   - All functions are thread-safe, except that thimble_destroy() must be the last call on its
 *     arena.
 *   - An arena belongs to the process that made it. In a child of a fork every call on it is
 *     UNAVAILABLE. The blocks of device:cpu that callers hold are there, as copies of the moment of
 *     the fork, and may be used until the child ends.
 *   - Structs that Thimble fills start with struct_size, set by the caller to sizeof: a newer
 *     library fills only what an older caller knows.
 */
#ifndef THIMBLE_H_
#define THIMBLE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when a signature or a meaning changes; adding functions or fields does not. */
#define THIMBLE_ABI_VERSION 2

typedef struct thimble_arena thimble_arena;

typedef enum thimble_status {
  THIMBLE_OK = 0,
  THIMBLE_INVALID_ARGUMENT = 1, /* a value, an option or a pointer that cannot be right */
  THIMBLE_OUT_OF_MEMORY = 2,    /* thimble_explain() tells why */
  THIMBLE_UNAVAILABLE = 3,      /* no driver, no device, or the device was lost */
  THIMBLE_INTERNAL = 4          /* the driver or the system refused something it should not */
} thimble_status;

/* THIMBLE_ABI_VERSION of the library that was loaded. */
uint32_t thimble_abi_version(void);

/* Text of the last failure on this thread; "" if there was none. Valid until the next call. */
const char* thimble_last_error(void);

/* `options` is "key:value,key:value", the grammar of THIMBLE_CONF; NULL or "" means all defaults.
 * allocator/README.md lists the keys. The arena is ready when this returns. */
thimble_status thimble_create(const char* options, thimble_arena** arena);

/* What thimble_create() would say about `options` before it looks for a device. `device_bytes` is
 * the memory the limit must fit in; 0 if it is not known. */
thimble_status thimble_check_options(const char* options, uint64_t device_bytes);

/* For fronts, and whoever else reads THIMBLE_CONF. Tells what `options` says, in its order and as
 * it is written, and then what that implies (swap_limit: swap:auto); after that judges it, as
 * thimble_check_options() does. `own` names the options that only the caller knows, with their
 * values: "front:thimble|bfc,other:on|off"; NULL if there are none. `tell` may be NULL. */
typedef void (*thimble_tell)(void* context, const char* key, const char* value);
thimble_status thimble_read_options(const char* options, const char* own, thimble_tell tell,
                                    void* context);

/* The options for thimble_create() that THIMBLE_CONF, in `options`, means on device number `index`
 * of a front. `decided` is what the front has decided, in the same grammar: it counts more than
 * `options`, and an option without a value there is left out. Devices do not share a file: `.index`
 * is added to its path, but for the first. `buffer` and `bytes` as in thimble_snapshot(). */
thimble_status thimble_device_options(const char* options, const char* own, const char* decided,
                                      unsigned index, char* buffer, size_t* bytes);

/* The size that `text` means wherever an option takes one: "1048576", "512KiB", "1.5GiB". */
thimble_status thimble_parse_size(const char* text, uint64_t* bytes);

/* Gives everything back to the driver. Blocks still held become invalid. NULL is allowed. Does
 * nothing in a child of a fork. */
void thimble_destroy(thimble_arena* arena);

/* 1 in a child of the process that made the arena, otherwise 0. Takes no lock. */
int thimble_is_in_child(const thimble_arena* arena);

/* The effective options, in the same grammar; valid as long as the arena. */
const char* thimble_options(const thimble_arena* arena);

/* One block of at least `bytes`, contiguous in addresses, aligned to `alignment` (0 or a power of
 * two up to 2 MiB; never less than 256). It may be used at once in the order of `stream`.
 * `key` names who asks (0: nobody); it is kept for explanations and plans.
 * Zero bytes give a null block, which thimble_free() accepts. */
thimble_status thimble_allocate(thimble_arena* arena, size_t bytes, size_t alignment,
                                uint64_t stream, uint64_t key, void** block);

/* A key for a name of `length` bytes: never 0, and the same in every process, so that what plans
 * have learned (option plan_file) can be used again. */
uint64_t thimble_key_of(const char* name, size_t length);

/* The same, and the arena remembers the name: for what it tells when memory runs out, and for its
 * event log. 0 for an empty name, if `arena` or `name` is NULL, and if the host has no memory
 * for it. */
uint64_t thimble_remember(thimble_arena* arena, const char* name, size_t length);

/* A name that was remembered, cut off after 200 bytes; "" if it is not known: the arena has room
 * for some thousands. Valid as long as the arena. */
const char* thimble_name_of(const thimble_arena* arena, uint64_t key);

/* thimble_allocate() for a caller who knows its steps: requests of one step of training have the
 * same `step`, of another one another (0: not known). A plan recognises a request by its key, its
 * size and how often that came before in its step. Blocks that are expected to outlive many steps
 * (`long_lived` is not 0) are kept together, out of the way of those that come and go. */
thimble_status thimble_allocate_in_step(thimble_arena* arena, size_t bytes, size_t alignment,
                                        uint64_t stream, uint64_t key, uint64_t step,
                                        int long_lived, void** block);

/* Returns a block. Work already submitted to `stream` may still use it; other streams get its
 * memory only when `stream` has passed this point. */
thimble_status thimble_free(thimble_arena* arena, void* block, uint64_t stream);

/* `stream` is about to be destroyed: waits for what was freed on it and forgets it, because its
 * number may soon name another stream. Nothing may be freed on it meanwhile. */
thimble_status thimble_forget_stream(thimble_arena* arena, uint64_t stream);

typedef struct thimble_block_info {
  size_t struct_size;
  uint64_t bytes;   /* usable from its address: the request, rounded up to 256 */
  uint64_t key;     /* who asked; 0 for blocks of up to 4 KiB: threads pass them on */
  uint64_t seams;   /* places where it jumps in physical memory: 0 unless stitched */
  uint64_t address; /* where it begins */
} thimble_block_info;

/* Swapping (option swap:auto): when memory is short, the bytes of blocks that nobody uses move to
 * the host, and back before they are used; addresses stay. That is safe only for blocks whose every
 * use is announced: a block moves when it was named to thimble_unpin() once, is not pinned now, and
 * was never exposed. Without the option, the next three functions do nothing. */

/* An op that may run at the same time as others, but should not while memory is short. Not for ops
 * that wait for other ops. The same to both calls. */
#define THIMBLE_OP_TAKES_TURN 1u

/* An op is about to use `blocks`: they are brought back and stay until thimble_unpin(). Addresses
 * that are no large blocks of the arena are ignored. All or nothing: OUT_OF_MEMORY if they do not
 * fit together. `op` names the op (thimble_key_of), `step` is as in thimble_allocate_in_step(). */
thimble_status thimble_pin(thimble_arena* arena, const void* const* blocks, size_t count,
                           uint64_t op, uint64_t step, unsigned flags);

/* The op has used `blocks`, which were pinned, and those in `touched`, such as its results; or that
 * was submitted to `stream`. */
thimble_status thimble_unpin(thimble_arena* arena, const void* const* blocks, size_t count,
                             const void* const* touched, size_t touched_count, uint64_t stream,
                             unsigned flags);

/* Somebody may use `blocks` unseen from now on: they come back, and stay until they are freed. */
thimble_status thimble_expose(thimble_arena* arena, const void* const* blocks, size_t count);

/* What is known about a block that is held now. */
thimble_status thimble_query(thimble_arena* arena, const void* block, thimble_block_info* info);

/* The same about the block that `address` points into. */
thimble_status thimble_query_inside(thimble_arena* arena, const void* address,
                                    thimble_block_info* info);

/* The two ranges that an arena has reserved for as long as it lives: all its blocks are in them,
 * and nobody else's memory is. */
typedef struct thimble_addresses {
  size_t struct_size;
  uint64_t home; /* most blocks */
  uint64_t home_bytes;
  uint64_t alias; /* stitched ones */
  uint64_t alias_bytes;
} thimble_addresses;

thimble_status thimble_get_addresses(thimble_arena* arena, thimble_addresses* addresses);

/* A uint64_t for every statistic of allocator/base/statistics.def, which says what they mean. One
 * sum is exact at every call:
 *   reserved = in_use + magazines + free_small + free_large + spare                         */
typedef struct thimble_stats {
  size_t struct_size;
#define THIMBLE_STATISTIC(name, meaning) uint64_t name;
#include "allocator/base/statistics.def"
} thimble_stats;

/* Their names in this order, with spaces between. */
const char* thimble_stats_names(void);

thimble_status thimble_get_stats(thimble_arena* arena, thimble_stats* stats);

/* Peaks restart from the current values. */
thimble_status thimble_reset_peaks(thimble_arena* arena);

/* The peaks of a span of time. Any number of them may be open, one within another or side by
 * side; they change neither each other nor the peaks in thimble_stats. */
typedef struct thimble_peaks {
  size_t struct_size;
  uint64_t in_use; /* counts magazines as in use */
  uint64_t reserved;
} thimble_peaks;

/* It begins now; `mark` names it. */
thimble_status thimble_peak_begin(thimble_arena* arena, uint64_t* mark);
/* The peaks since it began. */
thimble_status thimble_peak_read(thimble_arena* arena, uint64_t mark, thimble_peaks* peaks);
/* Nobody will read it any more. */
thimble_status thimble_peak_end(thimble_arena* arena, uint64_t mark);

/* Gives whole free chunks back to the driver until at most `keep_bytes` are reserved. Waits for
 * streams that may still use them. `released_bytes` may be NULL. */
thimble_status thimble_trim(thimble_arena* arena, uint64_t keep_bytes, uint64_t* released_bytes);

/* Takes at most `bytes` from now on, up to the limit the arena was made with; free memory beyond
 * that is given back. OUT_OF_MEMORY if more is in use. */
thimble_status thimble_set_limit(thimble_arena* arena, uint64_t bytes);

typedef enum thimble_oom_kind {
  THIMBLE_OOM_NONE = 0,
  THIMBLE_OOM_TRUE = 1,          /* what is in use and the request are more than the device has */
  THIMBLE_OOM_FRAGMENTATION = 2, /* enough bytes are free, but not as one block */
  THIMBLE_OOM_LIMIT = 3,         /* the arena's own limit stops it; the device has more */
  THIMBLE_OOM_DRIVER =
      4 /* the driver gave less than the limit allows: others hold it, or it refuses */
} thimble_oom_kind;

typedef struct thimble_oom {
  size_t struct_size;
  thimble_oom_kind kind;
  uint64_t requested;
  uint64_t missing; /* how many more bytes, of the limit or the device, would have made it fit; 0:
                       the driver refused although it has room by its own figures */
  uint64_t in_use;
  uint64_t free;
  uint64_t reserved;
  uint64_t limit;
  uint64_t largest_free;       /* without stitching */
  uint64_t largest_stitchable; /* with stitching, be that on or off */
  uint64_t device_free;        /* as the driver tells */
  uint32_t holders;            /* how many entries below are filled, largest first */
  uint64_t holder_key[8];
  uint64_t holder_bytes[8];
  uint64_t holder_blocks[8]; /* how many; blocks without a key count as one holder per size */
  uint64_t device_total;
  uint64_t held_outside; /* of the device, neither free nor this arena's */
  /* What would have made it fit, as computed when it failed; never a setting that is on. */
  uint64_t fits_limit;  /* this limit; 0: none, or the device has no more */
  uint64_t fits_stitch; /* 1: stitch:on */
  uint64_t fits_swap;   /* 1: swap:auto; known with swap:watch alone */
  uint64_t swap_leaves; /* then: so many bytes leave the device */
  uint64_t swap_stays;  /* of blocks that cannot leave now; known with swap:watch and swap:auto */
} thimble_oom;

/* Why the last request on this arena failed; kind NONE if none did. */
thimble_status thimble_explain(thimble_arena* arena, thimble_oom* oom);

/* The same in words, as thimble_last_error() had it, with who asked: `op`, which may be NULL.
 * `buffer` and `bytes` as in thimble_snapshot(). */
thimble_status thimble_explain_text(thimble_arena* arena, const char* op, char* buffer,
                                    size_t* bytes);

/* A step of training begins: recorded in the log. */
thimble_status thimble_mark_step(thimble_arena* arena);

/* Writes every allocation and free from now on to `path` (binary event log). "%p" in it becomes a
 * name of its own for every log of every process. When a request fails, the file of the same name
 * and .oom (with the number of the process for "%p") has the figures of the last one, as JSON; .now
 * has thimble_stats of less than a second ago, unless nothing was allocated or freed since. */
thimble_status thimble_log_start(thimble_arena* arena, const char* path);
thimble_status thimble_log_stop(thimble_arena* arena);

/* The state of the arena as JSON. Call with buffer NULL to learn the size (including the final
 * zero) in *bytes; a buffer that is too small is INVALID_ARGUMENT and *bytes tells the size. */
thimble_status thimble_snapshot(thimble_arena* arena, char* buffer, size_t* bytes);

/* Checks every invariant of the arena: for tests. Stops the process if one is broken. */
thimble_status thimble_check(thimble_arena* arena);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_H_ */
