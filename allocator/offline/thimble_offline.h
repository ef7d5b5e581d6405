/* Thimble's tools, which run before or after training in a process of their own.
 *
 * A training process does not load this library; it uses thimble.h. The functions never throw,
 * never exit and never print, and a call that fails writes no file.
 */
#ifndef THIMBLE_OFFLINE_H_
#define THIMBLE_OFFLINE_H_

#include <stddef.h>

#include "allocator/thimble.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a tool. `arguments` has `count` texts NAME=VALUE, each name once. Sizes are as in
 * THIMBLE_CONF. `answer` becomes the result, one JSON object. If the status is not THIMBLE_OK, it
 * is a text that says what was wrong and what to do. Free it with thimble_offline_free(). */
/* clang-format off */
/*  tool     arguments                       what it does
 *
 *  log      log=PATH [trace=PATH]           Summarises an event log and writes it as a text trace.
 *                                           Reads an incomplete log to its last event and a damaged
 *                                           one up to the damage.
 *  columns  log=PATH columns=PATH           The same, and writes the columns from which the page of
 *                                           `thimble report` draws
 *                                           (allocator/offline/logs/log_columns.h).
 *  replay   log=PATH options=OPTIONS        Tests whether the requests of an event log fit into an
 *                                           arena with these options, which must have a limit.
 *                                           Stops at the last failed request, or at the end of the
 *                                           log if none failed.
 *  plan     problem=PATH [plan=PATH]        Places buffers with known lifetimes as low as it can.
 *           [seconds=S] [seed=N]            The problem is a trace, a log, or a file with lines
 *           [baselines=on]                  id,lower,upper,size (live from lower until upper,
 *                                           which is excluded).
 *  swap     trace=PATH [schedule=PATH]      Plans which blocks of a training step wait on the host,
 *           [limit=BYTES|slowdown=PERCENT]  and when, so that the step needs less memory.
 *           [bus=BUS] [run_ahead_ms=MS]     OUT_OF_MEMORY if no schedule keeps the limit.
 *           [baselines=on]
 *  harmony  profile=PATH memory=BYTES       Plans and simulates one training iteration of a model
 *           batch=N [gpus=N]                that is larger than its GPUs. Writes the plan, and the
 *           [topology=PATH] [plan=PATH]     times of all its steps as JSON. OUT_OF_MEMORY if no
 *           [schedule=PATH] [baselines=on]  plan fits. More settings:
 *           ...                             allocator/offline/harmony/settings.h
 */
/* clang-format on */
thimble_status thimble_offline_run(const char* tool, const char* const* arguments, size_t count,
                                   char** answer);

void thimble_offline_free(char* answer);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_OFFLINE_H_ */
