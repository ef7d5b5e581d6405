/* Thimble's C interface: one arena per device, plain C types only.
 *
 * The TensorFlow plugin, the JAX front and Python (ctypes) use it, so that no C++ type crosses a
 * library border. Rules for every function:
 *   - It never throws, never exits and never prints. A failure is a status; thimble_last_error()
 *     says, on the same thread, which value was wrong and what to do.
 *   - A call that fails changes nothing.
 *   - All functions are thread-safe, except that thimble_destroy() must be the last call on its
 *     arena.
 *   - An arena belongs to the process that made it. In a forked child every call on it is
 *     UNAVAILABLE. The child has copies of the device:cpu blocks that callers held at the time of
 *     the fork, and may use them until it ends.
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

/* Grows by one when a signature or a meaning changes, not when functions or fields are added. */
#define THIMBLE_ABI_VERSION 2

typedef struct thimble_arena thimble_arena;

typedef enum thimble_status {
  THIMBLE_OK = 0,
  THIMBLE_INVALID_ARGUMENT = 1, /* an impossible value, option or pointer */
  THIMBLE_OUT_OF_MEMORY = 2,    /* thimble_explain() says why */
  THIMBLE_UNAVAILABLE = 3,      /* no driver, no device, or the device was lost */
  THIMBLE_INTERNAL = 4          /* an unexpected refusal of the driver or the system */
} thimble_status;

/* THIMBLE_ABI_VERSION of the loaded library. */
uint32_t thimble_abi_version(void);

/* Text of the last failure on this thread; "" if there was none. Valid until the next call. */
const char* thimble_last_error(void);

/* `options` is "key:value,key:value", the grammar of THIMBLE_CONF; NULL or "" means all defaults.
 * allocator/README.md lists the keys. The arena is ready when this returns. */
thimble_status thimble_create(const char* options, thimble_arena** arena);

/* Checks `options` as thimble_create() does before it opens a device. `device_bytes` is the memory
 * that the limit must fit in; 0 if unknown. */
thimble_status thimble_check_options(const char* options, uint64_t device_bytes);

/* For fronts and other readers of THIMBLE_CONF. Calls `tell` for every option in `options`, in its
 * order and spelling, then for those that they imply (swap_limit: swap:auto). Then checks `options`
 * as thimble_check_options() does. `own` lists the options that only the caller knows, with their
 * values: "front:thimble|bfc,other:on|off"; NULL if there are none. `tell` may be NULL. */
typedef void (*thimble_tell)(void* context, const char* key, const char* value);
thimble_status thimble_read_options(const char* options, const char* own, thimble_tell tell,
                                    void* context);

/* Makes the options for thimble_create() on device number `index` of a front from `options`, the
 * text of THIMBLE_CONF. `decided` has the decisions of the front in the same grammar: they override
 * `options`, and an option without a value is removed. Devices do not share files: all but the
 * first add `.index` to the paths. `buffer` and `bytes` as in thimble_snapshot(). */
thimble_status thimble_device_options(const char* options, const char* own, const char* decided,
                                      unsigned index, char* buffer, size_t* bytes);

/* Parses a size as options do: "1048576", "512KiB", "1.5GiB". */
thimble_status thimble_parse_size(const char* text, uint64_t* bytes);

/* Waits for the work of freed blocks and gives all memory back to the driver. Blocks still held
 * become invalid, so no work may use them. NULL is allowed. Does nothing in a forked child. */
void thimble_destroy(thimble_arena* arena);

/* 1 in a forked child of the process that made the arena, otherwise 0. Takes no lock. */
int thimble_is_in_child(const thimble_arena* arena);

/* The effective options, in the same grammar; valid as long as the arena. */
const char* thimble_options(const thimble_arena* arena);

/* One block of at least `bytes`, contiguous in addresses, aligned to `alignment` (0 or a power of
 * two up to 2 MiB; never less than 256). Work submitted to `stream` may use it at once. `key` names
 * the caller (0: unknown) for reports and plans. Zero bytes give a null block, which thimble_free()
 * accepts. */
thimble_status thimble_allocate(thimble_arena* arena, size_t bytes, size_t alignment,
                                uint64_t stream, uint64_t key, void** block);

/* The key of a name of `length` bytes: never 0, and the same in every process, so that a later run
 * can use what plans have learned (option plan_file). */
uint64_t thimble_key_of(const char* name, size_t length);

/* The same, and the arena remembers the name for reports of memory that ran out and for its event
 * log. 0 for an empty name, if `arena` or `name` is NULL, and if the host has no memory for it. */
uint64_t thimble_remember(thimble_arena* arena, const char* name, size_t length);

/* A remembered name, cut after 200 bytes; "" if it is unknown, because the arena has room for some
 * thousands. Valid as long as the arena. */
const char* thimble_name_of(const thimble_arena* arena, uint64_t key);

/* thimble_allocate() for a caller that knows its steps: all requests of one training step have the
 * same `step`, and each step another (0: unknown). A plan recognises a request by its key, its size
 * and its occurrence within the step. Blocks that should outlive many steps (`long_lived` is not 0)
 * are kept together, away from short-lived ones. */
thimble_status thimble_allocate_in_step(thimble_arena* arena, size_t bytes, size_t alignment,
                                        uint64_t stream, uint64_t key, uint64_t step,
                                        int long_lived, void** block);

/* Frees a block. Work already submitted to `stream` may still use it; other streams get its memory
 * only after `stream` has passed this point. */
thimble_status thimble_free(thimble_arena* arena, void* block, uint64_t stream);

/* Call this before `stream` is destroyed: its number may soon name another stream. Waits for the
 * blocks that were freed on it and forgets it. No thread may free on it meanwhile. */
thimble_status thimble_forget_stream(thimble_arena* arena, uint64_t stream);

typedef struct thimble_block_info {
  size_t struct_size;
  uint64_t bytes;   /* usable from its address: the request, rounded up to 256 */
  uint64_t key;     /* of the caller; 0 up to 4 KiB: threads pass small blocks on */
  uint64_t seams;   /* where two pieces meet: 0 unless stitched */
  uint64_t address; /* where it begins */
} thimble_block_info;

/* Swapping (option swap:auto): when memory is short, the bytes of idle blocks move to the host, and
 * back before their next use; addresses stay. That is safe only for blocks whose every use is
 * announced. So a block moves only if it was named to thimble_unpin() once, is not pinned now, and
 * was never exposed. Without the option, the next three functions do nothing. */

/* Marks an op that should not run side by side with others while memory is short. Not for ops that
 * wait for other ops. Pass the same flag to both calls. */
#define THIMBLE_OP_TAKES_TURN 1u

/* Announces that an op is about to use `blocks`: brings them back and keeps them until
 * thimble_unpin(). Ignores addresses that are not large blocks of the arena. All or nothing:
 * OUT_OF_MEMORY if they do not fit together. `op` names the op (thimble_key_of), `step` is as in
 * thimble_allocate_in_step(). */
thimble_status thimble_pin(thimble_arena* arena, const void* const* blocks, size_t count,
                           uint64_t op, uint64_t step, unsigned flags);

/* Announces that the op has used the pinned `blocks`, and those in `touched`, such as its results,
 * or has submitted that work to `stream`. */
thimble_status thimble_unpin(thimble_arena* arena, const void* const* blocks, size_t count,
                             const void* const* touched, size_t touched_count, uint64_t stream,
                             unsigned flags);

/* Others may use `blocks` without announcing it from now on: brings them back and keeps them until
 * they are freed. */
thimble_status thimble_expose(thimble_arena* arena, const void* const* blocks, size_t count);

/* Describes a block that is held now. */
thimble_status thimble_query(thimble_arena* arena, const void* block, thimble_block_info* info);

/* Describes the block that `address` points into. */
thimble_status thimble_query_inside(thimble_arena* arena, const void* address,
                                    thimble_block_info* info);

/* The two address ranges that an arena reserves as long as it lives. All its blocks are in them,
 * and no other memory. */
typedef struct thimble_addresses {
  size_t struct_size;
  uint64_t home; /* most blocks */
  uint64_t home_bytes;
  uint64_t alias; /* stitched ones */
  uint64_t alias_bytes;
} thimble_addresses;

thimble_status thimble_get_addresses(thimble_arena* arena, thimble_addresses* addresses);

/* One uint64_t for each statistic. allocator/base/statistics.def explains them. One sum is exact at
 * every call:
 *   reserved = in_use + magazines + free_small + free_large + spare                         */
typedef struct thimble_stats {
  size_t struct_size;
#define THIMBLE_STATISTIC(name, meaning) uint64_t name;
#include "allocator/base/statistics.def"
} thimble_stats;

/* The names of the statistics in this order, separated by spaces. */
const char* thimble_stats_names(void);

thimble_status thimble_get_stats(thimble_arena* arena, thimble_stats* stats);

/* Restarts peaks from the current values. */
thimble_status thimble_reset_peaks(thimble_arena* arena);

/* The peaks of a span of time. Any number of spans may be open, nested or overlapping; they change
 * neither each other nor the peaks in thimble_stats. */
typedef struct thimble_peaks {
  size_t struct_size;
  uint64_t in_use; /* counts magazines as in use */
  uint64_t reserved;
} thimble_peaks;

/* Begins a span; `mark` names it. */
thimble_status thimble_peak_begin(thimble_arena* arena, uint64_t* mark);
/* The peaks since the span began. */
thimble_status thimble_peak_read(thimble_arena* arena, uint64_t mark, thimble_peaks* peaks);
/* Ends the span; it cannot be read any more. */
thimble_status thimble_peak_end(thimble_arena* arena, uint64_t mark);

/* Gives whole free chunks back to the driver until at most `keep_bytes` are reserved. Waits for the
 * streams that may still use them. `released_bytes` may be NULL. */
thimble_status thimble_trim(thimble_arena* arena, uint64_t keep_bytes, uint64_t* released_bytes);

/* Lowers the limit to `bytes`, or raises it again up to the limit that the arena was made with.
 * Gives free memory beyond it back. OUT_OF_MEMORY if more is in use. */
thimble_status thimble_set_limit(thimble_arena* arena, uint64_t bytes);

typedef enum thimble_oom_kind {
  THIMBLE_OOM_NONE = 0,
  THIMBLE_OOM_TRUE = 1,          /* memory in use and the request exceed the device */
  THIMBLE_OOM_FRAGMENTATION = 2, /* enough memory is free, but not in one block */
  THIMBLE_OOM_LIMIT = 3,         /* the arena's limit is reached; the device has more */
  THIMBLE_OOM_DRIVER =
      4 /* the driver gave less than the limit allows: others hold it, or it refuses */
} thimble_oom_kind;

typedef struct thimble_oom {
  size_t struct_size;
  thimble_oom_kind kind;
  uint64_t requested;
  uint64_t missing; /* bytes of the limit or the device that were missing; 0: the driver refused
                       although it reports enough free memory */
  uint64_t in_use;
  uint64_t free;
  uint64_t reserved;
  uint64_t limit;
  uint64_t largest_free;       /* without stitching */
  uint64_t largest_stitchable; /* with stitching, on or off */
  uint64_t device_free;        /* as the driver reports */
  uint32_t holders;            /* how many entries below are filled, largest first */
  uint64_t holder_key[8];
  uint64_t holder_bytes[8];
  uint64_t holder_blocks[8]; /* number; blocks without a key are one holder per size */
  uint64_t device_total;
  uint64_t held_outside; /* of the device, neither free nor reserved by this arena */
  /* What alone would have made it fit, computed when it failed; never a setting that is on. */
  uint64_t fits_limit;  /* with this limit; 0: none, or the device has no more */
  uint64_t fits_stitch; /* 1: stitch:on */
  uint64_t fits_swap;   /* 1: swap:auto; known with swap:watch alone */
  uint64_t swap_leaves; /* then this many bytes leave the device */
  uint64_t swap_stays;  /* of blocks that cannot leave now; known with swap:watch and swap:auto */
} thimble_oom;

/* Why the last request on this arena failed; kind NONE if none did. */
thimble_status thimble_explain(thimble_arena* arena, thimble_oom* oom);

/* The same as text, as in thimble_last_error(), with the name of the caller: `op`, which may be
 * NULL. `buffer` and `bytes` as in thimble_snapshot(). */
thimble_status thimble_explain_text(thimble_arena* arena, const char* op, char* buffer,
                                    size_t* bytes);

/* Records in the log that a training step begins. */
thimble_status thimble_mark_step(thimble_arena* arena);

/* Writes every allocation and free from now on to `path` (binary event log). "%p" in it becomes a
 * unique name for every log of every process. Two files are written beside it, with the number of
 * the process for "%p": PATH.oom has the figures of the last failed request as JSON; PATH.now has
 * thimble_stats, less than a second old unless nothing was allocated or freed since. */
thimble_status thimble_log_start(thimble_arena* arena, const char* path);
thimble_status thimble_log_stop(thimble_arena* arena);

/* The state of the arena as JSON. If `buffer` is NULL, only sets *bytes to the size, including the
 * final zero. If the buffer is too small, returns INVALID_ARGUMENT and sets *bytes to the size. */
thimble_status thimble_snapshot(thimble_arena* arena, char* buffer, size_t* bytes);

/* For tests: checks every invariant of the arena, and stops the process if one is broken. */
thimble_status thimble_check(thimble_arena* arena);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_H_ */
