/* Thimble's tools: what runs before or after training, in a process of its own.
 *
 * Nothing here is loaded into a training process; thimble.h is what runs there. The functions never
 * throw, never exit and never print, and a call that fails writes no file.
 */
#ifndef THIMBLE_OFFLINE_H_
#define THIMBLE_OFFLINE_H_

#include <stddef.h>

#include "allocator/thimble.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a tool. `arguments` has `count` texts NAME=VALUE, each name once; sizes are as in
 * THIMBLE_CONF. `answer` becomes the result, one JSON object, or, if the status is not THIMBLE_OK,
 * what was wrong and what to do, in words. Give it to thimble_offline_free().
 *
 *   log      log=PATH [trace=PATH]         what an event log tells; writes it as a text trace. A
 * log that is not complete is told to its last event, a damaged one as far as it is sound columns
 * log=PATH columns=PATH         the same; writes what the page of `thimble report` is made of
 * (allocator/offline/logs/log_columns.h) replay   log=PATH options=OPTIONS      would the requests
 * of an event log fit into an arena with these options, which must have a limit? The end is the
 *                                          last request that failed; without one, that of the log
 *   plan     problem=PATH [plan=PATH]      places buffers with known lifetimes as low as it can.
 * The [seconds=S] [seed=N]          problem has lines id,lower,upper,size (live from lower
 *            [baselines=on]                until upper, which is excluded), or is a trace or a log
 *   swap     trace=PATH [schedule=PATH]    which blocks of a training step wait on the host, and
 *            [limit=BYTES|slowdown=PERCENT] when, so that the step needs less memory.
 * OUT_OF_MEMORY: [bus=BUS] [run_ahead_ms=MS]   no schedule keeps the limit [baselines=on] harmony
 * profile=PATH memory=BYTES     plans and simulates one iteration of training a model that batch=N
 * [gpus=N]              is larger than its GPUs; writes the plan and the times of [topology=PATH]
 * [plan=PATH]   all its steps as JSON. OUT_OF_MEMORY: no plan fits. More [schedule=PATH] settings:
 * allocator/offline/harmony/settings.h [baselines=on] ...
 */
thimble_status thimble_offline_run(const char* tool, const char* const* arguments, size_t count,
                                   char** answer);

void thimble_offline_free(char* answer);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* THIMBLE_OFFLINE_H_ */
