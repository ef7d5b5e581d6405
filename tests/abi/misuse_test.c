/* Pointers that are no blocks, and structs and buffers of the wrong size: refused with a text that
 * names the value, while the blocks that are held keep their contents. */
#include "tests/abi/expect.h"

static const char kOptions[] = "device:cpu,memory:16MiB,chunk:64KiB";

static const char* NameOf(const void* pointer) {
  static char name[32];
  snprintf(name, sizeof(name), "0x%llx", (unsigned long long)(uintptr_t)pointer);
  return name;
}

static void* Allocate(thimble_arena* arena, size_t bytes) {
  void* block = NULL;
  EXPECT_OK(thimble_allocate(arena, bytes, 0, 0, 0, &block));
  return block;
}

/* Small blocks rest in the thread's magazine, large ones in the heap: both must notice. */
static void ASecondFreeIsNamed(thimble_arena* arena) {
  static const size_t sizes[] = {1, 4096, 4097, 100000, 3 * kMiB};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    void* const neighbour = Allocate(arena, sizes[i]);
    void* const block = Allocate(arena, sizes[i]);
    EXPECT_OK(thimble_free(arena, block, 0));
    for (int again = 0; again < 3; ++again) {
      EXPECT_INVALID(thimble_free(arena, block, (uint64_t)again), NameOf(block));
      EXPECT(ErrorSays("free"));
    }
    thimble_block_info info = {.struct_size = sizeof(info)};
    EXPECT_INVALID(thimble_query(arena, block, &info), NameOf(block));
    EXPECT_OK(thimble_free(arena, neighbour, 0));
  }
}

static void AnInteriorPointerIsNamed(thimble_arena* arena) {
  static const size_t sizes[] = {512, 4096, 100000, 3 * kMiB};
  static const size_t steps[] = {1, 8, 255, 256, 300};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    char* const block = Allocate(arena, sizes[i]);
    memset(block, 42, sizes[i]);
    for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); ++j) {
      char* const inside = block + steps[j];
      thimble_block_info info = {.struct_size = sizeof(info)};
      EXPECT_INVALID(thimble_free(arena, inside, 0), NameOf(inside));
      EXPECT_INVALID(thimble_query(arena, inside, &info), NameOf(inside));
    }
    EXPECT(block[0] == 42 && block[sizes[i] - 1] == 42);
    EXPECT_OK(thimble_free(arena, block, 0));
  }
}

static void AForeignPointerIsNamed(thimble_arena* arena) {
  int on_the_stack = 0;
  void* const on_the_heap = malloc(4096);
  thimble_arena* other = NULL;
  EXPECT_OK(thimble_create(kOptions, &other));
  void* const small = Allocate(other, 100);
  void* const large = Allocate(other, kMiB);
  void* const foreign[] = {
      &on_the_stack,         on_the_heap,       arena, small, large, (void*)(uintptr_t)1,
      (void*)(uintptr_t)256, (void*)UINTPTR_MAX};
  for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); ++i) {
    EXPECT_INVALID(thimble_free(arena, foreign[i], 0), NameOf(foreign[i]));
    EXPECT(ErrorSays("not memory of this arena"));
    thimble_block_info info = {.struct_size = sizeof(info)};
    EXPECT_INVALID(thimble_query(arena, foreign[i], &info), NameOf(foreign[i]));
  }
  EXPECT_OK(thimble_free(other, small, 0));
  EXPECT_OK(thimble_free(other, large, 0));
  ExpectUsable(other);
  thimble_destroy(other);
  free(on_the_heap);
}

/* A struct as a caller of another version has it: it knows fewer fields, or more. */
#define EXPECT_STRUCT_RULES(Struct, call)                                                     \
  do {                                                                                        \
    struct {                                                                                  \
      Struct known;                                                                           \
      unsigned char newer[64];                                                                \
    } out;                                                                                    \
    for (size_t size = 0; size < sizeof(size_t); ++size) {                                    \
      memset(&out, 0xEE, sizeof(out));                                                        \
      out.known.struct_size = size;                                                           \
      EXPECT_INVALID(call, "struct_size is not set");                                         \
      EXPECT(((unsigned char*)&out)[sizeof(size_t)] == 0xEE);                                 \
    }                                                                                         \
    for (size_t size = sizeof(size_t); size <= sizeof(out); ++size) {                         \
      memset(&out, 0xEE, sizeof(out));                                                        \
      out.known.struct_size = size;                                                           \
      EXPECT_OK(call);                                                                        \
      EXPECT(out.known.struct_size == size);                                                  \
      const size_t end = size < sizeof(Struct) ? size : sizeof(Struct);                       \
      for (size_t at = end; at < sizeof(out); ++at) {                                         \
        if (((unsigned char*)&out)[at] != 0xEE) EXPECT(!"no byte behind the struct changes"); \
      }                                                                                       \
    }                                                                                         \
  } while (0)

static void StructsOfOtherVersionsAreFilledAsFarAsTheyGo(thimble_arena* arena) {
  void* const block = Allocate(arena, 100000);
  EXPECT_STRUCT_RULES(thimble_stats, thimble_get_stats(arena, &out.known));
  EXPECT_STRUCT_RULES(thimble_block_info, thimble_query(arena, block, &out.known));
  EXPECT_STRUCT_RULES(thimble_addresses, thimble_get_addresses(arena, &out.known));
  EXPECT_STRUCT_RULES(thimble_oom, thimble_explain(arena, &out.known));
  EXPECT_OK(thimble_free(arena, block, 0));
}

static void ASnapshotBufferThatIsTooSmallIsToldTheSize(thimble_arena* arena) {
  size_t needed = 0;
  EXPECT_OK(thimble_snapshot(arena, NULL, &needed));
  char* const text = malloc(needed);
  const size_t rooms[] = {0, 1, needed - 1};
  for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); ++i) {
    size_t bytes = rooms[i];
    char says[32];
    snprintf(says, sizeof(says), "%zu bytes", needed);
    memset(text, 'x', needed);
    EXPECT_INVALID(thimble_snapshot(arena, text, &bytes), says);
    EXPECT(bytes == needed && text[0] == 'x');
  }
  EXPECT_OK(thimble_snapshot(arena, text, &needed));
  free(text);
}

static void ALogIsStartedOnceAndStoppedOnce(thimble_arena* arena) {
  EXPECT_INVALID(thimble_log_stop(arena), "no event log");
  EXPECT_ERROR(thimble_log_start(arena, "/nowhere/at/all"), THIMBLE_UNAVAILABLE, "/nowhere/at/all");
  EXPECT_OK(thimble_log_start(arena, "/dev/null"));
  EXPECT_INVALID(thimble_log_start(arena, "/dev/null"), "already");
  EXPECT_OK(thimble_log_stop(arena));
  EXPECT_INVALID(thimble_log_stop(arena), "no event log");
  /* A full disk ends the log, not the program. */
  EXPECT_ERROR(thimble_log_start(arena, "/dev/full"), THIMBLE_UNAVAILABLE, "No space left");
}

int main(void) {
  thimble_arena* arena = NULL;
  EXPECT_OK(thimble_create(kOptions, &arena));
  ASecondFreeIsNamed(arena);
  ExpectUsable(arena);
  AnInteriorPointerIsNamed(arena);
  ExpectUsable(arena);
  AForeignPointerIsNamed(arena);
  ExpectUsable(arena);
  StructsOfOtherVersionsAreFilledAsFarAsTheyGo(arena);
  ASnapshotBufferThatIsTooSmallIsToldTheSize(arena);
  ALogIsStartedOnceAndStoppedOnce(arena);
  ExpectUsable(arena);
  thimble_destroy(arena);
  return Finish();
}
