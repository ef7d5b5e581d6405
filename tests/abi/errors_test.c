/* Values that cannot be right, given to every function of thimble.h: the status, a text that names
 * the value, and an arena that works as before. */
#include "tests/abi/expect.h"

static const char kOptions[] = "device:cpu,memory:16MiB,chunk:64KiB";
static void NullArgumentsAreNamed(thimble_arena* arena) {
  void* block = NULL;
  size_t bytes = 0;
  thimble_stats stats = {.struct_size = sizeof(stats)};
  thimble_oom oom = {.struct_size = sizeof(oom)};
  thimble_block_info info = {.struct_size = sizeof(info)};
  EXPECT_INVALID(thimble_create(kOptions, NULL), "arena is null");
  EXPECT_INVALID(thimble_allocate(NULL, 1, 0, 0, 0, &block), "arena is null");
  EXPECT_INVALID(thimble_allocate(arena, 1, 0, 0, 0, NULL), "block is null");
  EXPECT_INVALID(thimble_free(NULL, NULL, 0), "arena is null");
  EXPECT_INVALID(thimble_query(NULL, arena, &info), "arena is null");
  EXPECT_INVALID(thimble_query(arena, arena, NULL), "info is null");
  thimble_addresses addresses = {.struct_size = sizeof(addresses)};
  EXPECT_INVALID(thimble_query_inside(NULL, arena, &info), "arena is null");
  EXPECT_INVALID(thimble_query_inside(arena, arena, NULL), "info is null");
  EXPECT_INVALID(thimble_get_addresses(NULL, &addresses), "arena is null");
  EXPECT_INVALID(thimble_get_addresses(arena, NULL), "addresses is null");
  EXPECT_INVALID(thimble_get_stats(NULL, &stats), "arena is null");
  EXPECT_INVALID(thimble_get_stats(arena, NULL), "stats is null");
  EXPECT_INVALID(thimble_reset_peaks(NULL), "arena is null");
  EXPECT_INVALID(thimble_trim(NULL, 0, NULL), "arena is null");
  EXPECT_INVALID(thimble_forget_stream(NULL, 0), "arena is null");
  EXPECT_INVALID(thimble_explain(NULL, &oom), "arena is null");
  EXPECT_INVALID(thimble_explain(arena, NULL), "oom is null");
  EXPECT_INVALID(thimble_mark_step(NULL), "arena is null");
  EXPECT_INVALID(thimble_log_start(NULL, "x"), "arena is null");
  EXPECT_INVALID(thimble_log_start(arena, NULL), "path is null");
  EXPECT_INVALID(thimble_log_stop(NULL), "arena is null");
  uint64_t mark = 0;
  thimble_peaks peaks = {.struct_size = sizeof(peaks)};
  EXPECT_INVALID(thimble_peak_begin(NULL, &mark), "arena is null");
  EXPECT_INVALID(thimble_peak_begin(arena, NULL), "mark is null");
  EXPECT_INVALID(thimble_peak_read(NULL, mark, &peaks), "arena is null");
  EXPECT_INVALID(thimble_peak_read(arena, mark, NULL), "peaks is null");
  EXPECT_INVALID(thimble_peak_read(arena, 4711, &peaks), "peak mark 4711 is not set");
  EXPECT_INVALID(thimble_peak_end(NULL, mark), "arena is null");
  EXPECT_INVALID(thimble_peak_end(arena, 4711), "peak mark 4711 is not set");
  EXPECT_INVALID(thimble_explain_text(NULL, NULL, NULL, &bytes), "arena is null");
  EXPECT_INVALID(thimble_explain_text(arena, NULL, NULL, NULL), "bytes is null");
  EXPECT_INVALID(thimble_snapshot(NULL, NULL, &bytes), "arena is null");
  EXPECT_INVALID(thimble_snapshot(arena, NULL, NULL), "bytes is null");
  EXPECT_INVALID(thimble_check(NULL), "arena is null");
  EXPECT(strcmp(thimble_options(NULL), "") == 0);
}

struct BadOptions {
  const char* options;
  const char* says;
};

/* Each error says what was wrong; an unknown key also says what there is. */
static void BadOptionsAreNamed(void) {
  static const struct BadOptions kBad[] = {
      {"color:red", "unknown option 'color'"},
      {"color:red", "device, memory, limit, preallocate, chunk, stitch"},
      {"device", "option 'device': '' is not 'cpu' or the number of a GPU"},
      {"device:tpu", "'tpu'"},
      {"device:-1", "'-1'"},
      {"device:cpu,device:cpu", "option 'device' is given twice"},
      {"device:cpu,memory:lots", "option 'memory': 'lots' is not a size"},
      {"device:cpu,memory:0", "option 'memory': '0'"},
      {"device:cpu,memory:99999999999TiB", "'99999999999TiB'"},
      {"device:cpu,memory:9EiB", "'9EiB'"},
      {"device:0,memory:1GiB", "use 'limit' instead"},
      {"device:cpu,memory:1GiB,limit:2GiB", "limit:2147483648 is more than memory:1073741824"},
      {"device:cpu,memory:1MiB", "limit:1048576"},
      {"device:cpu,memory:1MiB,chunk:2MiB,limit:4KiB", "limit:4096"},
      {"device:cpu,chunk:100000", "option 'chunk': '100000'"},
      {"device:cpu,chunk:4KiB", "a power of two from 64KiB to 1GiB"},
      {"device:cpu,stitch:yes", "option 'stitch': 'yes' is not 'on' or 'off'"},
      {"device:cpu,preallocate:1", "option 'preallocate': '1'"},
      {"device:cpu,retry_ms:-5", "option 'retry_ms': '-5'"},
      {"device:cpu,retry_ms:600001", "'600001'"},
      {"device:cpu,log:", "option 'log'"},
      {"device:cpu,memory:16MiB,log:/nowhere/at/all", "'/nowhere/at/all'"},
  };
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); ++i) {
    thimble_arena* arena = (thimble_arena*)&arena;
    const thimble_status status = thimble_create(kBad[i].options, &arena);
    if (!ErrorSays(kBad[i].says)) fprintf(stderr, "for the options '%s':\n", kBad[i].options);
    EXPECT(status == THIMBLE_INVALID_ARGUMENT || status == THIMBLE_UNAVAILABLE);
    EXPECT(ErrorSays(kBad[i].says));
    EXPECT(arena == NULL);
  }
}

/* This machine has none, or it has one: then ordinal 99 is missing. */
static void AMissingGpuIsUnavailable(void) {
  thimble_arena* arena = NULL;
  const thimble_status first = thimble_create("device:0", &arena);
  if (first != THIMBLE_OK) {
    EXPECT(first == THIMBLE_UNAVAILABLE);
    EXPECT(ErrorSays("libcuda") || ErrorSays("device") || ErrorSays("GPU"));
    EXPECT(thimble_create(NULL, &arena) == first && thimble_create("", &arena) == first);
  }
  thimble_destroy(arena);
  EXPECT(thimble_create("device:99", &arena) == THIMBLE_UNAVAILABLE && arena == NULL);
  EXPECT(strlen(thimble_last_error()) > 20);
}

static void AbsurdSizesAreOutOfMemory(thimble_arena* arena) {
  static const size_t sizes[] = {16 * kMiB + 1,   (size_t)1 << 40, ((size_t)1 << 63) - 1,
                                 (size_t)1 << 63, SIZE_MAX - 4096, SIZE_MAX - 255,
                                 SIZE_MAX - 1,    SIZE_MAX};
  static const size_t alignments[] = {0, 1, 256, 4096, 2 * kMiB};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    for (size_t j = 0; j < sizeof(alignments) / sizeof(alignments[0]); ++j) {
      void* block = arena;
      EXPECT_ERROR(thimble_allocate(arena, sizes[i], alignments[j], 0, 0, &block),
                   THIMBLE_OUT_OF_MEMORY, "16.00 MiB");
      EXPECT(block == NULL);
      thimble_oom oom = {.struct_size = sizeof(oom)};
      EXPECT_OK(thimble_explain(arena, &oom));
      EXPECT(oom.kind == THIMBLE_OOM_TRUE || oom.kind == THIMBLE_OOM_LIMIT);
    }
  }
}

/* The answer must not depend on whether the thread has a block of that size at hand. */
static void AbsurdAlignmentsAreNamed(thimble_arena* arena) {
  static const size_t alignments[] = {3, 255, 257, 3 * 4096, 4 * kMiB, SIZE_MAX, (size_t)1 << 63};
  static const char* const names[] = {"alignment 3 ",
                                      "alignment 255 ",
                                      "alignment 257 ",
                                      "alignment 12288 ",
                                      "alignment 4194304 ",
                                      "alignment 18446744073709551615 ",
                                      "alignment 9223372036854775808 "};
  for (int warm = 0; warm < 2; ++warm) {
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); ++i) {
      void* block = arena;
      EXPECT_INVALID(thimble_allocate(arena, 256, alignments[i], 0, 0, &block), names[i]);
      EXPECT(block == NULL);
    }
    void* kept = NULL;
    EXPECT_OK(thimble_allocate(arena, 256, 0, 0, 0, &kept));
    EXPECT_OK(thimble_free(arena, kept, 0)); /* now in this thread's magazine */
  }
}

int main(void) {
  thimble_arena* arena = NULL;
  EXPECT_OK(thimble_create(kOptions, &arena));
  NullArgumentsAreNamed(arena);
  ExpectUsable(arena);
  BadOptionsAreNamed();
  AMissingGpuIsUnavailable();
  ExpectUsable(arena);
  AbsurdSizesAreOutOfMemory(arena);
  ExpectUsable(arena);
  AbsurdAlignmentsAreNamed(arena);
  ExpectUsable(arena);
  thimble_destroy(arena);
  return Finish();
}
