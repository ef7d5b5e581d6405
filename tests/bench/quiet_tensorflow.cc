// TensorFlow's framework library writes to stderr while it is loaded ("Could not find cuda
// drivers"), and no setting stops it. stderr is for this program's own messages, so it is
// redirected during that time: the executable's .preinit_array runs before the constructors of
// every shared library, its own constructors run after them.
#include <fcntl.h>
#include <unistd.h>

namespace {

int saved_stderr = -1;

// Sanitizers are not ready this early.
__attribute__((no_sanitize("address", "thread", "undefined"))) void TurnAway() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (saved_stderr >= 0) dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

__attribute__((constructor)) void TurnBack() {
  if (saved_stderr < 0) return;
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
}

__attribute__((section(".preinit_array"), used)) void (*const run_early)() = TurnAway;

}  // namespace
