/* Every function of thimble.h, used as intended, by a C program that knows only the header. */
#include <unistd.h>

#include "tests/abi/expect.h"

static const char kOptions[] = "device:cpu,memory:64MiB,chunk:64KiB";

static thimble_stats StatsOf(thimble_arena* arena) {
  thimble_stats stats;
  memset(&stats, 0xAB, sizeof(stats));
  stats.struct_size = sizeof(stats);
  EXPECT_OK(thimble_get_stats(arena, &stats));
  EXPECT(stats.reserved ==
         stats.in_use + stats.magazines + stats.free_small + stats.free_large + stats.spare);
  return stats;
}

static void Fill(void* block, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char*)block)[i] = (unsigned char)(seed + i * 7);
}

static int Holds(const void* block, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (((const unsigned char*)block)[i] != (unsigned char)(seed + i * 7)) return 0;
  }
  return 1;
}

static void BlocksKeepTheirContents(thimble_arena* arena) {
  enum { kBlocks = 64 };
  void* blocks[kBlocks];
  size_t sizes[kBlocks];
  for (unsigned i = 0; i < kBlocks; ++i) {
    sizes[i] = 1 + (size_t)i * i * 97;
    EXPECT_OK(thimble_allocate(arena, sizes[i], 0, /*stream=*/i % 2, /*key=*/i, &blocks[i]));
    EXPECT(blocks[i] != NULL && (uintptr_t)blocks[i] % 256 == 0);
    Fill(blocks[i], sizes[i], i);
  }
  EXPECT(StatsOf(arena).live_blocks == kBlocks);
  for (unsigned i = 0; i < kBlocks; ++i) EXPECT(Holds(blocks[i], sizes[i], i));
  for (unsigned i = 0; i < kBlocks; ++i) EXPECT_OK(thimble_free(arena, blocks[i], i % 2));
  const thimble_stats stats = StatsOf(arena);
  EXPECT(stats.live_blocks == 0 && stats.in_use == 0);
  EXPECT(stats.allocations == kBlocks && stats.peak_in_use > 0 && stats.largest_request > 0);
}

static void QueryTellsSizeKeyAndAlignmentHolds(thimble_arena* arena) {
  for (size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2) {
    void* block = NULL;
    EXPECT_OK(thimble_allocate(arena, 10000, alignment, 0, /*key=*/77, &block));
    EXPECT((uintptr_t)block % alignment == 0);
    thimble_block_info info = {.struct_size = sizeof(info)};
    EXPECT_OK(thimble_query(arena, block, &info));
    EXPECT(info.bytes >= 10000 && info.key == 77 && info.seams == 0);
    EXPECT(info.address == (uintptr_t)block);
    Fill(block, info.bytes, 3);
    EXPECT_OK(thimble_free(arena, block, 0));
  }
}

static void ABlockIsFoundByEachOfItsBytes(thimble_arena* arena) {
  static const size_t sizes[] = {1, 256, 700, 4096, 100000, 3 * kMiB};
  thimble_addresses reserved = {.struct_size = sizeof(reserved)};
  EXPECT_OK(thimble_get_addresses(arena, &reserved));
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    void* allocated[2];
    for (int j = 0; j < 2; ++j) {
      EXPECT_OK(thimble_allocate(arena, sizes[i], 0, 0, 0, &allocated[j]));
    }
    char* const block = allocated[0];
    void* const neighbour = allocated[1];
    EXPECT((uintptr_t)block - reserved.home < reserved.home_bytes ||
           (uintptr_t)block - reserved.alias < reserved.alias_bytes);
    const size_t steps[] = {0, sizes[i] / 2, sizes[i] - 1};
    for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); ++j) {
      thimble_block_info info = {.struct_size = sizeof(info)};
      EXPECT_OK(thimble_query_inside(arena, block + steps[j], &info));
      EXPECT(info.address == (uintptr_t)block && info.bytes >= sizes[i]);
    }
    EXPECT_OK(thimble_free(arena, block, 0));
    thimble_block_info info = {.struct_size = sizeof(info)};
    EXPECT_INVALID(thimble_query_inside(arena, block, &info), "not in a block in use");
    EXPECT_OK(thimble_query_inside(arena, neighbour, &info));
    EXPECT_OK(thimble_free(arena, neighbour, 0));
  }
  int foreign = 0;
  thimble_block_info info = {.struct_size = sizeof(info)};
  EXPECT_INVALID(thimble_query_inside(arena, &foreign, &info), "not in a block in use");
}

static void ZeroBytesAreANullBlock(thimble_arena* arena) {
  void* block = arena;
  EXPECT_OK(thimble_allocate(arena, 0, 0, 0, 0, &block));
  EXPECT(block == NULL);
  EXPECT_OK(thimble_free(arena, block, 0));
}

/* Every second MiB is free and nothing more can be had: 4 MiB must be put together. */
static void AStitchedBlockIsOneRangeOfAddresses(thimble_arena* arena) {
  enum { kPieces = 64 };
  void* pieces[kPieces];
  for (int i = 0; i < kPieces; ++i) EXPECT_OK(thimble_allocate(arena, kMiB, 0, 0, 1, &pieces[i]));
  for (int i = 0; i < kPieces; i += 2) EXPECT_OK(thimble_free(arena, pieces[i], 0));
  const thimble_stats before = StatsOf(arena);
  void* block = NULL;
  EXPECT_OK(thimble_allocate(arena, 4 * kMiB, 0, 0, 2, &block));
  thimble_block_info info = {.struct_size = sizeof(info)};
  EXPECT_OK(thimble_query(arena, block, &info));
  EXPECT(info.seams == 3);
  EXPECT_OK(thimble_query_inside(arena, (char*)block + 3 * kMiB, &info));
  EXPECT(info.address == (uintptr_t)block && info.seams == 3);
  Fill(block, 4 * kMiB, 9);
  for (int i = 1; i < kPieces; i += 2) Fill(pieces[i], kMiB, 100u + (unsigned)i);
  EXPECT(Holds(block, 4 * kMiB, 9));
  const thimble_stats after = StatsOf(arena);
  EXPECT(after.stitches == before.stitches + 1);
  EXPECT(after.alias_active == before.alias_active + 4 * kMiB);
  EXPECT_OK(thimble_check(arena));
  EXPECT_OK(thimble_free(arena, block, 0));
  EXPECT(StatsOf(arena).alias_idle >= 4 * kMiB);
  for (int i = 1; i < kPieces; i += 2) EXPECT_OK(thimble_free(arena, pieces[i], 0));
}

static void ExplainTellsWhyARequestFailed(thimble_arena* arena) {
  void* held = NULL;
  void* block = arena;
  const uint64_t key = thimble_remember(arena, "MatMul", 6);
  EXPECT_OK(thimble_allocate(arena, 40 * kMiB, 0, 0, key, &held));
  EXPECT_ERROR(thimble_allocate(arena, 40 * kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY,
               "40.00 MiB");
  EXPECT(block == NULL);
  thimble_oom oom = {.struct_size = sizeof(oom)};
  EXPECT_OK(thimble_explain(arena, &oom));
  EXPECT(oom.kind != THIMBLE_OOM_NONE && oom.requested == 40 * kMiB && oom.missing > 0);
  EXPECT(oom.limit == 64 * kMiB && oom.in_use >= 40 * kMiB && oom.reserved <= oom.limit);
  EXPECT(oom.holders == 1 && oom.holder_key[0] == key && oom.holder_bytes[0] == 40 * kMiB &&
         oom.holder_blocks[0] == 1);
  EXPECT(oom.device_total == 64 * kMiB && oom.held_outside == 0 && oom.fits_limit == 0 &&
         oom.fits_stitch == 0 && oom.fits_swap == 0);
  EXPECT(StatsOf(arena).out_of_memory == 1);

  size_t bytes = 0;
  EXPECT_OK(thimble_explain_text(arena, "Relu", NULL, &bytes));
  char text[2048];
  EXPECT(bytes > 0 && bytes <= sizeof(text));
  EXPECT_OK(thimble_explain_text(arena, "Relu", text, &bytes));
  EXPECT(strlen(text) + 1 == bytes && strstr(text, "40.00 MiB by Relu") != NULL &&
         strstr(text, "40.00 MiB MatMul") != NULL);
  EXPECT_OK(thimble_explain_text(arena, NULL, text, &bytes));
  EXPECT(strstr(text, " by ") == NULL);
  bytes = 1;
  EXPECT_ERROR(thimble_explain_text(arena, NULL, text, &bytes), THIMBLE_INVALID_ARGUMENT,
               "bytes are needed");
  EXPECT_OK(thimble_free(arena, held, 0));
}

static thimble_peaks PeaksOf(thimble_arena* arena, uint64_t mark) {
  thimble_peaks peaks = {.struct_size = sizeof(peaks)};
  EXPECT_OK(thimble_peak_read(arena, mark, &peaks));
  return peaks;
}

static void MarksHavePeaksOfTheirOwn(thimble_arena* arena) {
  void* block = NULL;
  uint64_t outer = 0;
  uint64_t inner = 0;
  EXPECT_OK(thimble_peak_begin(arena, &outer));
  const uint64_t before = PeaksOf(arena, outer).in_use;
  EXPECT_OK(thimble_allocate(arena, 8 * kMiB, 0, 0, 0, &block));
  EXPECT_OK(thimble_free(arena, block, 0));
  EXPECT_OK(thimble_peak_begin(arena, &inner));
  EXPECT_OK(thimble_allocate(arena, 4 * kMiB, 0, 0, 0, &block));
  EXPECT_OK(thimble_free(arena, block, 0));
  EXPECT(PeaksOf(arena, inner).in_use == before + 4 * kMiB);
  EXPECT_OK(thimble_peak_end(arena, inner));
  EXPECT(PeaksOf(arena, outer).in_use == before + 8 * kMiB);
  EXPECT(PeaksOf(arena, outer).reserved >= before + 8 * kMiB);
  EXPECT_OK(thimble_peak_end(arena, outer));
  EXPECT_ERROR(thimble_peak_end(arena, outer), THIMBLE_INVALID_ARGUMENT, "is not set");
}

static void TrimGivesMemoryBackAndPeaksRestart(thimble_arena* arena) {
  EXPECT(StatsOf(arena).peak_reserved > kMiB);
  uint64_t released = 0;
  const uint64_t before = StatsOf(arena).reserved;
  EXPECT_OK(thimble_trim(arena, kMiB, &released));
  EXPECT(released > 0 && StatsOf(arena).reserved == before - released);
  EXPECT_OK(thimble_trim(arena, 0, NULL));
  EXPECT(StatsOf(arena).reserved == 0);
  EXPECT_OK(thimble_reset_peaks(arena));
  EXPECT(StatsOf(arena).peak_reserved == 0 && StatsOf(arena).peak_in_use == 0);
}

static void TheLimitCanChange(thimble_arena* arena) {
  const uint64_t before = StatsOf(arena).limit;
  EXPECT_OK(thimble_set_limit(arena, 16 * kMiB));
  EXPECT(StatsOf(arena).limit == 16 * kMiB);
  void* block = NULL;
  EXPECT_ERROR(thimble_allocate(arena, 17 * kMiB, 0, 0, 0, &block), THIMBLE_OUT_OF_MEMORY,
               "17.00 MiB");
  EXPECT_ERROR(thimble_set_limit(arena, before + kMiB), THIMBLE_INVALID_ARGUMENT, "was made for");
  EXPECT_OK(thimble_set_limit(arena, before));
}

static void SnapshotIsJsonOfTheAnnouncedSize(thimble_arena* arena) {
  void* block = NULL;
  EXPECT_OK(thimble_allocate(arena, 5000, 0, 0, /*key=*/31337, &block));
  size_t bytes = 0;
  EXPECT_OK(thimble_snapshot(arena, NULL, &bytes));
  char* text = malloc(bytes + 1);
  text[bytes] = '!';
  EXPECT_OK(thimble_snapshot(arena, text, &bytes));
  EXPECT(strlen(text) + 1 == bytes && text[bytes] == '!');
  EXPECT(text[0] == '{' && text[bytes - 2] == '}');
  EXPECT(strstr(text, "\"key\":31337") != NULL && strstr(text, "\"reserved\":") != NULL);
  free(text);
  EXPECT_OK(thimble_free(arena, block, 0));
}

/* Appends "key=value;" to the text in `context`. */
static void Append(void* context, const char* key, const char* value) {
  char* const end = (char*)context + strlen(context);
  sprintf(end, "%s=%s;", key, value);
}

static void OptionsAreReadForAFront(void) {
  const char own[] = "front:thimble|bfc";
  const char options[] = "front:bfc,swap_limit:1GiB,log:/a";
  char told[200] = "";
  EXPECT_OK(thimble_read_options(options, own, Append, told));
  EXPECT(strcmp(told, "front=bfc;swap_limit=1GiB;log=/a;swap=auto;") == 0);
  EXPECT_OK(thimble_read_options(NULL, NULL, NULL, NULL));
  EXPECT_INVALID(thimble_read_options(options, NULL, NULL, NULL), "unknown option 'front'");
  told[0] = 0;
  EXPECT_INVALID(thimble_read_options("limti:1,front:bfc", own, Append, told), ", front");
  EXPECT(strcmp(told, "limti=1;front=bfc;") == 0);

  size_t bytes = 0;
  EXPECT_OK(thimble_device_options(options, own, "device:1,swap_limit:", 1, NULL, &bytes));
  EXPECT(bytes == sizeof("device:1,log:/a.1"));
  EXPECT_OK(thimble_device_options(options, own, "device:1,swap_limit:", 1, told, &bytes));
  EXPECT(strcmp(told, "device:1,log:/a.1") == 0);
  --bytes;
  EXPECT_INVALID(thimble_device_options(options, own, "device:1,swap_limit:", 1, told, &bytes),
                 "too small");
  EXPECT_OK(thimble_device_options(NULL, NULL, NULL, 0, told, &bytes));
  EXPECT(strcmp(told, "") == 0);
  EXPECT_INVALID(thimble_device_options(options, NULL, NULL, 0, told, &bytes), "'front'");
  EXPECT_INVALID(thimble_device_options(options, own, NULL, 0, told, NULL), "bytes is null");
}

static void OptionsAreCheckedWithoutADevice(void) {
  EXPECT_OK(thimble_check_options(NULL, 0));
  EXPECT_OK(thimble_check_options("device:7,limit:4GiB", 0));
  EXPECT_OK(thimble_check_options("limit:4GiB", 4096 * (uint64_t)kMiB));
  EXPECT_ERROR(thimble_check_options("limit:4GiB", 1), THIMBLE_INVALID_ARGUMENT,
               "limit:4294967296");
  EXPECT_ERROR(thimble_check_options("limti:4GiB", 0), THIMBLE_INVALID_ARGUMENT, "'limti'");
  uint64_t bytes = 7;
  EXPECT_OK(thimble_parse_size("1.5GiB", &bytes));
  EXPECT(bytes == 1536 * (uint64_t)kMiB);
  EXPECT_ERROR(thimble_parse_size("lots", &bytes), THIMBLE_INVALID_ARGUMENT, "'lots'");
  EXPECT_ERROR(thimble_parse_size(NULL, &bytes), THIMBLE_INVALID_ARGUMENT, "text");
  EXPECT_ERROR(thimble_parse_size("1", NULL), THIMBLE_INVALID_ARGUMENT, "bytes");
  EXPECT(bytes == 1536 * (uint64_t)kMiB);
}

static void AStreamCanEnd(thimble_arena* arena) {
  void* block = NULL;
  EXPECT_OK(thimble_allocate(arena, kMiB, 0, /*stream=*/9, 0, &block));
  EXPECT_OK(thimble_free(arena, block, 9));
  EXPECT_OK(thimble_forget_stream(arena, 9));
  EXPECT_OK(thimble_forget_stream(arena, 10));
}

static void TheLogRecordsWhatHappens(thimble_arena* arena) {
  char path[4096];
  const char* folder = getenv("TEST_TMPDIR");
  snprintf(path, sizeof(path), "%s/use_test.%d.log", folder ? folder : "/tmp", (int)getpid());
  void* block = NULL;
  EXPECT_OK(thimble_log_start(arena, path));
  EXPECT_OK(thimble_mark_step(arena));
  EXPECT_OK(thimble_allocate(arena, 5000, 0, 0, 1, &block));
  EXPECT_OK(thimble_free(arena, block, 0));
  EXPECT_OK(thimble_log_stop(arena));
  FILE* file = fopen(path, "rb");
  EXPECT(file != NULL);
  char magic[8];
  EXPECT(fread(magic, 1, sizeof(magic), file) == sizeof(magic));
  EXPECT(memcmp(magic, "THIMBLEL", sizeof(magic)) == 0);
  fseek(file, 0, SEEK_END);
  const long records = (ftell(file) - 16) / 48;
  EXPECT(records >= 4); /* the three, and what is reserved */
  fclose(file);
  remove(path);
}

int main(void) {
  thimble_arena* arena = NULL;
  EXPECT(thimble_abi_version() == THIMBLE_ABI_VERSION);
  EXPECT(strcmp(thimble_last_error(), "") == 0);
  EXPECT_OK(thimble_create(kOptions, &arena));
  EXPECT(strstr(thimble_options(arena), "device:cpu,memory:67108864,limit:67108864") != NULL);

  BlocksKeepTheirContents(arena);
  QueryTellsSizeKeyAndAlignmentHolds(arena);
  ZeroBytesAreANullBlock(arena);
  AStitchedBlockIsOneRangeOfAddresses(arena);
  ExplainTellsWhyARequestFailed(arena);
  MarksHavePeaksOfTheirOwn(arena);
  TrimGivesMemoryBackAndPeaksRestart(arena);
  TheLimitCanChange(arena);
  SnapshotIsJsonOfTheAnnouncedSize(arena);
  TheLogRecordsWhatHappens(arena);
  OptionsAreCheckedWithoutADevice();
  OptionsAreReadForAFront();
  AStreamCanEnd(arena);
  ABlockIsFoundByEachOfItsBytes(arena);

  /* What the arena calls its options makes the same arena again. */
  thimble_arena* again = NULL;
  EXPECT_OK(thimble_create(thimble_options(arena), &again));
  EXPECT(strcmp(thimble_options(again), thimble_options(arena)) == 0);
  thimble_destroy(again);
  thimble_destroy(arena);
  thimble_destroy(NULL);
  return Finish();
}
