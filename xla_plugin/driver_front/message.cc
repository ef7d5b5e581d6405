#include "xla_plugin/driver_front/message.h"

#include <unistd.h>

namespace thimble::xla {

void Say(const std::string& text) {
  const std::string line = "thimble: " + text + "\n";
  // If stderr is closed, nobody can read the message.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace thimble::xla
