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
#define THIMBLE_ABI_VERSION 1

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
 * (`resident` is not 0) are kept together, out of the way of those that come and go. */
thimble_status thimble_allocate_in_step(thimble_arena* arena, size_t bytes, size_t alignment,
                                        uint64_t stream, uint64_t key, uint64_t step, int resident,
                                        void** block);

/* Returns a block. Work already submitted to `stream` may still use it; other streams get its
 * memory only when `stream` has passed this point. */
thimble_status thimble_free(thimble_arena* arena, void* block, uint64_t stream);

/* `stream` is about to be destroyed: waits for what was freed on it and forgets it, because its
 * number may soon name another stream. Nothing may be freed on it meanwhile. */
thimble_status thimble_forget_stream(thimble_arena* arena, uint64_t stream);

typedef struct thimble_block_info {
  size_t struct_size;
  uint64_t bytes; /* usable from its address: the request, rounded up to 256 */
  uint64_t key;   /* who asked; 0 for blocks of up to 4 KiB: threads pass them on */
  uint64_t seams; /* places where it jumps in physical memory: 0 unless stitched */
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

/* Bytes, unless the comment says otherwise. One sum is exact at every call:
 *   reserved = in_use + magazines + free_small + free_large + spare                         */
typedef struct thimble_stats {
  size_t struct_size;
  uint64_t in_use;      /* held by callers, rounded to 256 B, padding included */
  uint64_t magazines;   /* small blocks cached by threads */
  uint64_t free_small;  /* free inside slabs of small blocks */
  uint64_t free_large;  /* free elsewhere */
  uint64_t spare;       /* chunks the driver refused to take back: used first */
  uint64_t reserved;    /* physical memory taken from the driver */
  uint64_t vacant;      /* home addresses whose memory was trimmed */
  uint64_t limit;       /* reserved - spare never exceeds it */
  uint64_t peak_in_use; /* counts magazines as in use */
  uint64_t peak_reserved;
  uint64_t largest_free;    /* largest block that needs no stitching */
  uint64_t largest_request; /* largest one served so far */
  uint64_t alias_active;    /* addresses of stitched blocks in use */
  uint64_t alias_idle;      /* addresses cached for the next stitch */
  uint64_t live_blocks;     /* number of blocks held by callers */
  uint64_t allocations;     /* number of blocks ever handed out */
  uint64_t stitches;        /* number of blocks that were stitched */
  uint64_t stitch_hits;     /* of these, how many needed no driver call */
  uint64_t out_of_memory;   /* number of requests that failed */
  /* Plans: allocator/docs/003-plans.md. Requests are those too large for slabs. */
  uint64_t plans;            /* number of plans that came into use */
  uint64_t plans_retired;    /* of these, how many were dropped because they failed */
  uint64_t plan_seats;       /* requests that recur and are known */
  uint64_t plan_requests;    /* number of requests while a plan was in use */
  uint64_t plan_hits;        /* of these, how many got the place planned for them */
  uint64_t plan_repairs;     /* of the hits, how many at a new place, theirs from then on */
  uint64_t plan_misses;      /* found their place occupied */
  uint64_t plan_homeless;    /* had no place */
  uint64_t plan_height;      /* bytes the plan in use needs; 0 if there is none */
  uint64_t plan_lower_bound; /* most bytes these requests held at once */
  uint64_t plan_repeats;     /* of the hits, how many had the same address the time before */
  uint64_t plans_stale;      /* what plan_file brought and nobody needed: learnt anew */
  /* Swapping: allocator/docs/005-swapping.md. What is swapped counts nowhere above but in
   * live_blocks. */
  uint64_t swapped;         /* of blocks held by callers, now on the host */
  uint64_t swap_out_bytes;  /* that left the device so far */
  uint64_t swap_in_bytes;   /* and came back */
  uint64_t swap_late_bytes; /* of these, when an op waited for them already */
  uint64_t swap_wait_ns;    /* that ops and requests waited for copies so far */
  uint64_t swap_out_ns;     /* that copies out took */
  uint64_t swap_in_ns;      /* and copies in */
  uint64_t swap_goal;       /* no more is reserved if swapping can help it; 0: it is off */
  uint64_t swap_host_full;  /* number of times the host had no room for more */
} thimble_stats;

thimble_status thimble_get_stats(thimble_arena* arena, thimble_stats* stats);

/* Peaks restart from the current values. */
thimble_status thimble_reset_peaks(thimble_arena* arena);

/* The peaks of a stretch of time. Any number of them may be open, one within another or side by
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

typedef struct thimble_log_info {
  size_t struct_size;
  uint64_t events;            /* number of records in the log */
  uint64_t allocations;       /* number of these that are allocations */
  uint64_t peak_in_use;       /* largest sum of bytes asked for and not freed */
  uint64_t reserved_at_start; /* bytes taken from the driver before the log began */
  uint64_t peak_reserved;     /* most bytes taken from the driver */
  uint64_t reserved_at_peak;  /* bytes taken from the driver at the time of peak_in_use */
  uint64_t stitches;          /* number of blocks that were stitched */
  uint64_t complete;          /* 0: it is not all that the process had to tell: see note */
  uint64_t steps;             /* number of steps of training that began */
  uint64_t plan_requests;     /* as in thimble_stats, to the last 64 requests */
  uint64_t plan_hits;
  uint64_t plan_repeats;
  uint64_t swap_out_bytes; /* as in thimble_stats */
  uint64_t swap_in_bytes;
  uint64_t swap_wait_ns;
  uint64_t peak_swapped;    /* most bytes on the host at once */
  uint64_t limit;           /* as in thimble_stats; 0 if the log is too old to tell */
  uint64_t out_of_memory;   /* number of requests that were refused, whoever asks again once */
  uint64_t duration_ns;     /* until the last event */
  uint64_t damaged_at;      /* number, from 1, of the record that ends a damaged log; 0: none */
  uint64_t swapped_at_peak; /* bytes on the host at the time of peak_in_use */
  char note[256];           /* why the log is not complete, in words; "" if it is */
} thimble_log_info;

/* Reads an event log, also one that is not complete: a program that runs or was killed is told to
 * its last event, a damaged log as far as it is sound. Writes it as a text trace to `trace`, and
 * what it tells to `info`; either may be NULL. */
thimble_status thimble_log_convert(const char* log, const char* trace, thimble_log_info* info);

/* What came of a replay. */
typedef struct thimble_replay_info {
  size_t struct_size;
  uint64_t reached;      /* 0: a request before its end did not fit */
  uint64_t fits;         /* 1: all of it, with the request that had failed */
  uint64_t failed_bytes; /* of that request; 0 if the log has none */
  uint64_t requests;     /* number of those that were served */
  uint64_t peak_in_use;
  uint64_t peak_reserved;
} thimble_replay_info;

/* The requests of an event log once more, in an arena with `options`, which must have a limit:
 * would they have fit? No byte of memory is touched. The end is the last request that failed; if
 * there is none, that of the log. */
thimble_status thimble_replay_log(const char* log, const char* options, thimble_replay_info* info);

/* Reads an event log. Writes it to `columns` as what the page of `thimble report` is made of
 * (allocator/observe/log_columns.h), and what it tells to `info`, which may be NULL. */
thimble_status thimble_report_file(const char* log, const char* columns, thimble_log_info* info);

/* What a plan comes to, in the units of its file. */
typedef struct thimble_plan_info {
  size_t struct_size;
  uint64_t buffers;     /* number of them in the file */
  uint64_t height;      /* end of the highest */
  uint64_t lower_bound; /* most that is live at once: no plan is lower */
} thimble_plan_info;

/* Places buffers with known lifetimes as low as it can in `seconds`, so that no two that are live
 * together overlap. Reads lines id,lower,upper,size from the file `problem` (live from lower until
 * upper, which is excluded) and writes lines id,offset to `plan`, and what it comes to to `info`;
 * either may be NULL. The same seed searches in the same way. */
thimble_status thimble_plan_file(const char* problem, const char* plan, double seconds,
                                 uint64_t seed, thimble_plan_info* info);

/* What a swap plan comes to. */
typedef struct thimble_swap_info {
  size_t struct_size;
  uint64_t peak_before;  /* most bytes that are live in the step */
  uint64_t peak_after;   /* most bytes on the device with the schedule */
  uint64_t slowdown_ppm; /* how much longer a step takes, in millionths, if all is as modelled */
  uint64_t bytes_out;    /* bytes copied to the host in a step */
  uint64_t bytes_in;     /* bytes copied back */
  uint64_t swaps;        /* number of times that a block leaves */
  uint64_t bus_out;      /* bytes per second to the host that it was planned for */
  uint64_t bus_in;       /* and back */
  uint64_t peak_doa;     /* peak_after for the scores of AutoSwap, without slowdown */
  uint64_t peak_aoa;
  uint64_t peak_wdoa;
  uint64_t peak_swdoa;
  char policy[64]; /* which of the searches found it */
} thimble_swap_info;

/* Plans which blocks of a training step wait on the host, and when, so that the step needs less
 * memory. Reads a text trace with accesses (O lines) from the file `trace`, writes one line per
 * block that leaves to `schedule`, and what it comes to to `info`; either may be NULL. `options` is
 * key:value,key:value or NULL: limit (the largest peak that is low enough) or slowdown (percent of
 * a step that may be lost; 0), bus (13, 24, or OUT/IN in GB/s; 13) and run_ahead_ms (0). A limit
 * that no schedule keeps is OUT_OF_MEMORY. */
thimble_status thimble_swap_file(const char* trace, const char* schedule, const char* options,
                                 thimble_swap_info* info);

/* What a plan for training on several GPUs comes to. */
typedef struct thimble_harmony_info {
  size_t struct_size;
  uint64_t ns;             /* that an iteration takes, if all is as modelled */
  uint64_t swap_in_bytes;  /* from the host to all GPUs, in an iteration */
  uint64_t swap_out_bytes; /* and back */
  uint64_t p2p_bytes;      /* between GPUs */
  uint64_t peak_bytes;     /* most on any GPU */
  uint64_t compute_ppm;    /* millionths of the GPUs' time in which they compute */
  uint64_t bound_ns;       /* computing alone, if all but the last pack is run again; 0: unknown */
  uint64_t swap_limit;     /* bytes that a plan may swap before that counts as lost time; 0: any */
  uint64_t forward_packs;  /* number of them */
  uint64_t backward_packs;
  uint64_t is_pipeline; /* 0: dp, 1: pp */
  /* Baselines, all 0 where one does not apply: virtual memory that evicts what was used least
   * recently, and the published system's own search. */
  uint64_t lru_dp_ns;
  uint64_t lru_dp_swap_bytes;
  uint64_t lru_dp_compute_ppm;
  uint64_t lru_dp_recompute_ns;
  uint64_t lru_dp_recompute_swap_bytes;
  uint64_t lru_dp_recompute_compute_ppm;
  uint64_t lru_pp_ns;
  uint64_t lru_pp_swap_bytes;
  uint64_t lru_pp_compute_ppm;
  uint64_t lru_pp_recompute_ns;
  uint64_t lru_pp_recompute_swap_bytes;
  uint64_t lru_pp_recompute_compute_ppm;
  uint64_t harmony_dp_ns;
  uint64_t harmony_dp_swap_bytes;
  uint64_t harmony_dp_compute_ppm;
  uint64_t harmony_pp_ns;
  uint64_t harmony_pp_swap_bytes;
  uint64_t harmony_pp_compute_ppm;
  uint64_t harmony_dp_prefetch_ns;
  uint64_t harmony_dp_prefetch_swap_bytes;
  uint64_t harmony_dp_prefetch_compute_ppm;
  uint64_t harmony_pp_prefetch_ns;
  uint64_t harmony_pp_prefetch_swap_bytes;
  uint64_t harmony_pp_prefetch_compute_ppm;
} thimble_harmony_info;

/* Plans and simulates one iteration of training a model that is larger than its GPUs. Reads what
 * the layers cost from the file `profile` and the links between GPUs and host from `topology`
 * (NULL: one switch, as in the published figures). Writes the plan as JSON to `plan`, the times of
 * all its steps as JSON to `schedule`, and what it comes to to `info`; each may be NULL. `options`
 * is key:value,key:value: gpus (1 to 8), memory (of each GPU) and batch are needed; mode (dp, pp,
 * auto), rules (thimble, harmony), prefetch (on, off) and packers (published, all, or names with +
 * between) of rules harmony, keep (on, off: activations for the backward) and resident (on, off:
 * packs between iterations), seconds of search, swap_limit (bytes, off). Memory in which no plan
 * fits is OUT_OF_MEMORY. */
thimble_status thimble_harmony_file(const char* profile, const char* topology, const char* options,
                                    const char* plan, const char* schedule,
                                    thimble_harmony_info* info);

/* The state of the arena as JSON. Call with buffer NULL to learn the size (including the final
 * zero) in *bytes; a buffer that is too small is INVALID_ARGUMENT and *bytes tells the size. */
thimble_status thimble_snapshot(thimble_arena* arena, char* buffer, size_t* bytes);

/* Checks every invariant of the arena: for tests. Stops the process if one is broken. */
thimble_status thimble_check(thimble_arena* arena);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_H_ */
