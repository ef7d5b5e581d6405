#include "allocator/base/whole_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace thimble {
namespace {

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
  const File file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return CannotWrite(path, errno);
  }
  return absl::OkStatus();
}

absl::Status ReplaceWholeFile(absl::string_view text, const std::string& path) {
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".tmp");
  absl::Status status = WriteWholeFile(text, unfinished);
  if (status.ok() && std::rename(unfinished.c_str(), path.c_str()) != 0) {
    status = CannotWrite(path, errno);
  }
  if (!status.ok()) std::remove(unfinished.c_str());
  return status;
}

}  // namespace thimble
