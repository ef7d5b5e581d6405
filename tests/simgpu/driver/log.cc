#include "tests/simgpu/driver/log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simgpu {
namespace {

bool Append(const std::string& path, int* descriptor, std::string* error) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
  if (path.empty()) return true;
  *descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (*descriptor >= 0) return true;
  *error = "cannot write '" + path + "': " + std::strerror(errno);
  return false;
}

// One write per line, so that processes do not cut each other's lines. A full disk loses lines,
// because the simulator must not stop the program for that.
void WriteLine(int descriptor, const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = write(descriptor, text.data(), text.size());
}

thread_local bool is_provoked = false;

std::string Sender() {
  return std::to_string(getpid()) + "." + std::to_string(syscall(SYS_gettid)) + " ";
}

}  // namespace

bool Log::Open(const Options& options, std::string* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  illegal_calls_ = 0;
  const bool opened =
      Append(options.log, &calls_, error) && Append(options.illegal, &illegal_, error);
  is_read_ = calls_ >= 0 || sink_ != nullptr;
  return opened;
}

void Log::Write(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (sink_ != nullptr) sink_(line.c_str());
  if (calls_ >= 0) WriteLine(calls_, Sender() + line);
}

void Log::Provoke(bool on) { is_provoked = on; }

void Log::WriteIllegal(const std::string& line) {
  if (is_provoked) return;
  ++illegal_calls_;
  std::lock_guard<std::mutex> lock(mutex_);
  if (calls_ >= 0) WriteLine(calls_, Sender() + "illegal " + line);
  if (illegal_ >= 0) {
    WriteLine(illegal_, Sender() + line);
  } else {
    WriteLine(STDERR_FILENO, "simgpu: illegal " + line);
  }
}

void Log::SetSink(Sink sink) {
  std::lock_guard<std::mutex> lock(mutex_);
  sink_ = sink;
  is_read_ = calls_ >= 0 || sink_ != nullptr;
}

}  // namespace simgpu
