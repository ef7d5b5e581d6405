#include "allocator/base/whole_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::Status CannotRead(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot read '", path, "': ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("'", path, "' could not be written: ", std::strerror(error)));
}

// These return errno; 0 on success.
int Write(absl::string_view text, const std::string& path) {
  const File file(std::fopen(path.c_str(), "wb"));
  const bool done = file != nullptr &&
                    std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                    std::fflush(file.get()) == 0;
  return done ? 0 : errno;
}

// Writes a temporary file beside it, then renames that.
int Replace(absl::string_view text, const std::string& path, const fs::file_status& old) {
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".tmp");
  int failed = Write(text, unfinished);
  if (failed == 0) {
    std::error_code error;
    if (fs::exists(old)) fs::permissions(unfinished, old.permissions(), error);
    if (std::rename(unfinished.c_str(), path.c_str()) != 0) failed = errno;
  }
  if (failed != 0) std::remove(unfinished.c_str());
  return failed;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::size_t most) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return CannotRead(path, errno);
  std::string text;
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  for (;;) {
    const std::size_t size = text.size();
    const std::size_t wanted = std::min(kBlock, most - size);
    text.resize(size + wanted);
    const std::size_t count = std::fread(&text[size], 1, wanted, file.get());
    text.resize(size + count);
    if (count < kBlock) break;
  }
  if (std::ferror(file.get()) != 0) return CannotRead(path, errno);
  return text;
}

absl::Status WriteWholeFile(absl::string_view text, const std::string& path) {
  std::error_code error;
  const fs::file_status old = fs::status(path, error);
  int failed = 0;
  if (!fs::exists(old)) {
    failed = Replace(text, path, old);
  } else if (fs::is_regular_file(old)) {
    failed = Replace(text, fs::canonical(path, error).string(), old);  // keeps a symbolic link
  } else {
    failed = Write(text, path);
  }
  return failed == 0 ? absl::OkStatus() : CannotWrite(path, failed);
}

}  // namespace thimble
