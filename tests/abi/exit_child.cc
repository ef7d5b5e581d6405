// A program that uses libthimble.so and ends in the way its argument names (P6). exits_test.py runs
// every way and checks the status and that stderr is empty.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/abi/api.h"

namespace {

Api api;
thimble_arena* arena = nullptr;
std::atomic<int> operations{0};

void* Allocate(size_t bytes) {
  void* block = nullptr;
  if (api.allocate(arena, bytes, 0, 0, 0, &block) != THIMBLE_OK) {
    std::fprintf(stderr, "allocate: %s\n", api.last_error());
    _exit(3);
  }
  std::memset(block, 1, bytes);
  return block;
}

void Free(void* block) {
  if (api.free(arena, block, 0) == THIMBLE_OK) return;
  std::fprintf(stderr, "free: %s\n", api.last_error());
  _exit(3);
}

// What every program does before it ends: a live arena, live blocks of every kind, a magazine.
void Use() {
  for (const size_t bytes : {100, 5000, 1000000}) {
    Allocate(bytes);
    Free(Allocate(bytes));
  }
}

// A thread that works until the process is gone.
void WorkForEver() {
  for (;;) {
    Free(Allocate(100));
    Free(Allocate(1000000));
    operations.fetch_add(1);
  }
}

void StartThreads(void (*work)()) {
  for (int i = 0; i < 3; ++i) std::thread(work).detach();
  while (operations.load() < 1000) std::this_thread::yield();
}

// A thread that holds the arena's locks most of the time.
void TrimForEver() {
  for (;;) {
    thimble_stats stats = {};
    stats.struct_size = sizeof(stats);
    api.get_stats(arena, &stats);
    api.trim(arena, 0, nullptr);
    Free(Allocate(100));
    operations.fetch_add(1);
  }
}

void Create(const char* options) {
  if (api.create(options, &arena) == THIMBLE_OK) return;
  std::fprintf(stderr, "create: %s\n", api.last_error());
  _exit(3);
}

// Uses blocks in turn for which there is not enough memory: they leave and come back all the time.
void SwapForEver() {
  const void* blocks[8];
  for (const void*& block : blocks) {
    block = Allocate(1 << 20);
    api.unpin(arena, nullptr, 0, &block, 1, 0, 0);
  }
  for (uint64_t op = 1;; ++op) {
    const void* const block = blocks[op % std::size(blocks)];
    if (api.pin(arena, &block, 1, op % 100, 1, 0) != THIMBLE_OK) _exit(3);
    if (*static_cast<const char*>(block) != 1) _exit(3);
    api.unpin(arena, &block, 1, nullptr, 0, 0, 0);
    operations.fetch_add(1);
  }
}

// In an arena of its own.
void StartSwapping() {
  api.destroy(arena);
  Create("device:cpu,memory:64MiB,limit:16MiB,chunk:64KiB,swap:auto");
  StartThreads(SwapForEver);
}

// Waits for memory that no thread will free.
void WaitForMemory() {
  operations.fetch_add(1000);
  void* block = nullptr;
  api.allocate(arena, 60 << 20, 0, 0, 0, &block);
}

// Ends a fork child with `end`; it must end well, and the parent must not notice.
void ForkAndEnd(void (*end)()) {
  const pid_t child = fork();
  if (child == 0) {
    end();
    _exit(4);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "the fork child ended with status %#x\n", status);
    _exit(3);
  }
  Free(Allocate(100));
}

void ExitWell() { std::exit(0); }

struct FreesInDestructor {
  ~FreesInDestructor() {
    if (block == nullptr) return;
    Free(block);
    Free(Allocate(100));
    Free(Allocate(1000000));
    if (api.free(arena, this, 0) == THIMBLE_OK || api.last_error()[0] == '\0') _exit(3);
  }
  void* block = nullptr;
};
FreesInDestructor at_exit;
thread_local FreesInDestructor at_thread_end;  // made before Thimble's own, so destroyed after

void FreeAtThreadEnd() {
  at_thread_end.block = nullptr;
  at_thread_end.block = Allocate(100);
  Free(Allocate(200));
}

struct Way {
  const char* name;
  void (*end)();
};
const Way kWays[] = {
    {"return", [] {}},
    {"exit", ExitWell},
    {"exit_in_thread", [] { std::thread(ExitWell).join(); }},
    {"quick_exit", [] { std::quick_exit(0); }},
    {"_exit", [] { _exit(0); }},
    {"abort", [] { std::abort(); }},
    {"sigterm", [] { raise(SIGTERM); }},
    {"exception", [] { throw std::runtime_error("nobody catches this"); }},
    {"main_thread_first", [] { pthread_exit(nullptr); }},
    {"destroy", [] { api.destroy(arena); }},
    {"destroy_in_atexit", [] { std::atexit([] { api.destroy(arena); }); }},
    {"free_in_static_destructor", [] { at_exit.block = Allocate(100); }},
    {"free_in_thread_local_destructor",
     [] {
       std::thread(FreeAtThreadEnd).join();
       FreeAtThreadEnd();
     }},
    {"destroy_before_thread_ends",
     [] {
       std::atomic<int> phase{0};
       std::thread other([&] {
         Free(Allocate(100));
         phase = 1;
         while (phase != 2) std::this_thread::yield();
       });
       while (phase != 1) std::this_thread::yield();
       api.destroy(arena);
       phase = 2;
       other.join();
     }},
    {"return_with_running_threads", [] { StartThreads(WorkForEver); }},
    {"exit_with_running_threads",
     [] {
       StartThreads(TrimForEver);
       std::exit(0);
     }},
    {"exit_with_waiting_threads", [] { StartThreads(WaitForMemory); }},
    {"return_while_swapping", StartSwapping},
    {"exit_while_swapping",
     [] {
       StartSwapping();
       std::exit(0);
     }},
    {"fork_child_exits_while_parent_swaps",
     [] {
       StartSwapping();
       for (int i = 0; i < 10; ++i) ForkAndEnd(ExitWell);
     }},
    {"fork_child_exits", [] { ForkAndEnd(ExitWell); }},
    {"fork_child_exits_directly", [] { ForkAndEnd([] { _exit(0); }); }},
    {"fork_child_exits_while_parent_is_busy",
     [] {
       StartThreads(TrimForEver);
       for (int i = 0; i < 30; ++i) ForkAndEnd(ExitWell);
     }},
    {"close",
     [] {
       api.destroy(arena);
       api.Close();
     }},
    {"close_with_live_arena", [] { api.Close(); }},
    {"close_before_thread_ends",
     [] {
       std::atomic<int> phase{0};
       std::thread other([&] {
         Free(Allocate(100));
         phase = 1;
         while (phase != 2) std::this_thread::yield();
       });
       while (phase != 1) std::this_thread::yield();
       api.destroy(arena);
       api.Close();
       phase = 2;
       other.join();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  for (const Way& way : kWays) {
    if (name == "list") std::puts(way.name);
    if (name != way.name) continue;
    at_thread_end.block = nullptr;  // makes it
    api = Api::Open();
    Create("device:cpu,memory:64MiB,chunk:64KiB,retry_ms:60000");
    Use();
    std::puts("ready");
    std::fflush(stdout);
    way.end();
    return 0;
  }
  return name == "list" ? 0 : 2;
}
