/* thimble_offline.h from C: tools, their answers and their refusals. */
#include "allocator/offline/thimble_offline.h"

#include <stdarg.h>
#include <unistd.h>

#include "tests/abi/expect.h"

enum { kMost = 8, kPath = 4096 };

static thimble_status status;
static char* answer = NULL;

/* Runs a tool with texts NAME=VALUE, up to NULL. */
static void Run(const char* tool, ...) {
  const char* arguments[kMost];
  size_t count = 0;
  va_list texts;
  va_start(texts, tool);
  for (const char* text = va_arg(texts, const char*); text != NULL;
       text = va_arg(texts, const char*)) {
    arguments[count++] = text;
  }
  va_end(texts);
  thimble_offline_free(answer);
  status = thimble_offline_run(tool, arguments, count, &answer);
  EXPECT(answer != NULL);
}

#define EXPECT_ANSWER(text) \
  do {                      \
    EXPECT(status == 0);    \
    EXPECT(Says(text));     \
  } while (0)

#define EXPECT_REFUSED(code, text) \
  do {                             \
    EXPECT(status == (code));      \
    EXPECT(Says(text));            \
  } while (0)

static int Says(const char* text) {
  if (strstr(answer, text) != NULL) return 1;
  fprintf(stderr, "the answer is %s\n", answer);
  return 0;
}

/* Writes `text` to a file of this test, and NAME=PATH to `argument`. */
static const char* Written(char* argument, const char* name, const char* text) {
  const char* folder = getenv("TEST_TMPDIR");
  snprintf(argument, kPath, "%s=%s/offline_test.%d.%s", name, folder ? folder : "/tmp",
           (int)getpid(), name);
  const char* path = strchr(argument, '=') + 1;
  if (text == NULL) return path;
  FILE* file = fopen(path, "w");
  EXPECT(file != NULL);
  fputs(text, file);
  fclose(file);
  return path;
}

static void ExpectFirstLine(const char* path, const char* begin) {
  char line[128] = "";
  FILE* file = fopen(path, "r");
  EXPECT(file != NULL);
  EXPECT(fgets(line, sizeof(line), file) != NULL);
  EXPECT(strncmp(line, begin, strlen(begin)) == 0);
  fclose(file);
  remove(path);
}

static void LogsAreRead(void) {
  thimble_arena* arena = NULL;
  void* block = NULL;
  char log[kPath], trace[kPath], columns[kPath];
  const char* path = Written(log, "log", NULL);
  EXPECT_OK(thimble_create("device:cpu,memory:64MiB", &arena));
  EXPECT_OK(thimble_log_start(arena, path));
  EXPECT_OK(thimble_allocate(arena, 5000, 0, 0, 1, &block));
  EXPECT_OK(thimble_free(arena, block, 0));
  EXPECT_OK(thimble_log_stop(arena));
  thimble_destroy(arena);
  const char* out = Written(trace, "trace", NULL);
  Run("log", log, trace, NULL);
  EXPECT_ANSWER("\"allocations\":1,\"peak_in_use\":5000");
  EXPECT_ANSWER("\"complete\":true");
  ExpectFirstLine(out, "A 0 5000");
  out = Written(columns, "columns", NULL);
  Run("columns", log, columns, NULL);
  EXPECT_ANSWER("\"allocations\":1");
  ExpectFirstLine(out, "{");
  Run("replay", log, "options=limit:4MiB", NULL);
  EXPECT_ANSWER("\"reached\":true,\"fits\":true");
  Run("replay", log, "options=stitch:on", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "a replay needs a limit");
  Run("columns", log, NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "columns is missing");
  remove(path);
  Run("log", "log=/no/such", NULL);
  EXPECT_REFUSED(THIMBLE_UNAVAILABLE, "/no/such");
}

static void BuffersArePlaced(void) {
  char problem[kPath], plan[kPath];
  const char* path =
      Written(problem, "problem", "id,lower,upper,size\na,0,10,100\nb,0,5,60\nc,5,10,50\n");
  char csv[kPath + 4];
  snprintf(csv, sizeof(csv), "%s.csv", path);
  rename(path, csv);
  strcat(problem, ".csv");
  const char* out = Written(plan, "plan", NULL);
  Run("plan", problem, plan, "seconds=1", "seed=1", "baselines=on", NULL);
  EXPECT_ANSWER("\"buffers\":3,\"height\":160,\"lower_bound\":160,\"smartpool\":160");
  ExpectFirstLine(out, "id,offset\n");
  Run("plan", problem, "seconds=-1", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "seconds '-1'");
  Run("plan", problem, "seed=x", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "seed 'x'");
  Run("plan", problem, "baselines=maybe", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "write on or off");
  remove(csv);
}

static void SwapsAreScheduled(void) {
  char trace[kPath], schedule[kPath];
  const char* path = Written(
      trace, "trace",
      "A 1 20000000\nS\nO a 0.01 r:1 w:\nO b 0.01 r: w:\nA 2 10000000\nO c 0.01 r: w:2\nF 2\n"
      "O d 0.01 r: w:\nO e 0.01 r:1 w:\nS\n");
  const char* out = Written(schedule, "schedule", NULL);
  Run("swap", trace, schedule, "bus=24", NULL);
  EXPECT_ANSWER("\"peak_before\":30000000,\"peak_after\":20000000,\"slowdown_ppm\":0");
  EXPECT(strstr(answer, "autoswap") == NULL);
  ExpectFirstLine(out, "block,key,bytes,");
  Run("swap", trace, "baselines=on", NULL);
  EXPECT_ANSWER("\"DOA\":20000000");
  Run("swap", trace, "limit=1", NULL);
  EXPECT_REFUSED(THIMBLE_OUT_OF_MEMORY, "1 bytes");
  Run("swap", trace, "speed=1", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "speed");
  remove(path);
}

static void TrainingIsPlanned(void) {
  char profile[kPath], plan[kPath];
  const char* path = Written(
      profile, "profile",
      "ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,fwd_mem_bytes,bwd_mem_bytes,x_elems\n"
      "1,0,1000000,1,3,0.1,2000000,3000000,1000\n1,1,1000000,1,3,0.1,2000000,3000000,1000\n");
  const char* out = Written(plan, "plan", NULL);
  Run("harmony", profile, plan, "gpus=1", "memory=1GiB", "batch=2", "seconds=0.01", NULL);
  EXPECT_ANSWER("\"seconds\":12.");
  EXPECT_ANSWER("\"compute_bound\":12");
  EXPECT(strstr(answer, "baselines") == NULL);
  ExpectFirstLine(out, "{\"mode\":");
  Run("harmony", profile, "gpus=1", "memory=1MiB", "batch=2", NULL);
  EXPECT_REFUSED(THIMBLE_OUT_OF_MEMORY, "layer 0 needs");
  Run("harmony", profile, "gpus=9", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "9");
  Run("harmony", profile, NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "memory is missing");
  remove(path);
}

static void WhatIsWrongIsNamed(void) {
  Run("knit", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "'knit': the tools are log, columns, replay, plan");
  Run("log", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "log is missing");
  Run("log", "log", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "'log' is not NAME=VALUE");
  Run("log", "log=a", "log=b", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "'log' is given twice");
  Run("log", "log=a", "speed=1", NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "'speed' is not an argument of this tool");
  Run(NULL, NULL);
  EXPECT_REFUSED(THIMBLE_INVALID_ARGUMENT, "tool is null");
  const char* nothing = NULL;
  thimble_offline_free(answer);
  EXPECT(thimble_offline_run("log", &nothing, 1, &answer) == THIMBLE_INVALID_ARGUMENT);
  EXPECT(Says("an argument is null"));
  EXPECT(thimble_offline_run("log", NULL, 0, NULL) == THIMBLE_INVALID_ARGUMENT);
}

int main(void) {
  LogsAreRead();
  BuffersArePlaced();
  SwapsAreScheduled();
  TrainingIsPlanned();
  WhatIsWrongIsNamed();
  thimble_offline_free(answer);
  thimble_offline_free(NULL);
  return Finish();
}
