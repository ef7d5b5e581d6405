/* A test in plain C: what is expected, and where it was not so. */
#ifndef TESTS_ABI_EXPECT_H_
#define TESTS_ABI_EXPECT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/thimble.h"

static int expectations = 0;

#define EXPECT(condition)                                                                    \
  do {                                                                                       \
    ++expectations;                                                                          \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: not so: %s\nlast error: %s\n", __FILE__, __LINE__, #condition, \
              thimble_last_error());                                                         \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

#define EXPECT_OK(call) EXPECT((call) == THIMBLE_OK)

/* The call fails with `code`, and the text of the error contains `text`. */
#define EXPECT_ERROR(call, code, text) \
  do {                                 \
    EXPECT((call) == (code));          \
    EXPECT(ErrorSays(text));           \
  } while (0)

#define EXPECT_INVALID(call, text) EXPECT_ERROR(call, THIMBLE_INVALID_ARGUMENT, text)

enum { kMiB = 1 << 20 };

static inline int ErrorSays(const char* text) { return strstr(thimble_last_error(), text) != NULL; }

/* Nothing is held, and blocks of every kind can be had: magazine, slab, best fit, growth. */
__attribute__((unused)) static void ExpectUsable(thimble_arena* arena) {
  static const size_t sizes[] = {1, 256, 4096, 4097, 9000, 65536, 1000000, 5 * kMiB};
  enum { kSizes = sizeof(sizes) / sizeof(sizes[0]) };
  void* blocks[kSizes];
  for (int i = 0; i < kSizes; ++i) {
    EXPECT_OK(thimble_allocate(arena, sizes[i], 0, 0, 0, &blocks[i]));
    memset(blocks[i], i + 1, sizes[i]);
  }
  for (int i = 0; i < kSizes; ++i) {
    EXPECT(((unsigned char*)blocks[i])[sizes[i] - 1] == i + 1);
    EXPECT_OK(thimble_free(arena, blocks[i], 0));
  }
  thimble_stats stats = {.struct_size = sizeof(stats)};
  EXPECT_OK(thimble_get_stats(arena, &stats));
  EXPECT(stats.in_use == 0 && stats.live_blocks == 0);
  EXPECT_OK(thimble_check(arena));
}

/* Says how much was looked at, so that a test that looked at nothing is seen. */
static int Finish(void) {
  printf("%d expectations met\n", expectations);
  return expectations > 0 ? 0 : 1;
}

#endif /* TESTS_ABI_EXPECT_H_ */
