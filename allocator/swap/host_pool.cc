#include "allocator/swap/host_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"

namespace thimble {
namespace {

absl::Status Refused(const char* call, Bytes limit, int file) {
  const int code = errno;
  if (file >= 0) close(file);
  return absl::ErrnoToStatus(
      code, absl::StrCat(call, " for ", FormatBytes(limit), " of host memory for swapping"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostPool>> HostPool::Create(Bytes limit, Driver* driver,
                                                           std::function<Bytes()> available) {
  const int file = memfd_create("thimble-swap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return Refused("memfd_create", limit, file);
  if (ftruncate(file, static_cast<off_t>(limit)) != 0) return Refused("ftruncate", limit, file);
  if (fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return Refused("fcntl", limit, file);
  }
  void* const base =
      mmap(nullptr, limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED) return Refused("mmap", limit, file);
  madvise(base, limit, MADV_DONTDUMP);
  madvise(base, limit, MADV_DONTFORK);  // a child must not write to its parent's bytes
  return std::unique_ptr<HostPool>(
      new HostPool(file, static_cast<char*>(base), limit, driver, std::move(available)));
}

HostPool::~HostPool() {
  if (IsOurs()) {
    // Ignores errors: at the end of the process the driver may be gone, and its pins with it.
    for (void* const segment : pinned_) driver_->UnpinHost(segment).IgnoreError();
    munmap(base_, limit_);
  }
  close(file_);
}

bool HostPool::IsOurs() const { return getpid() == process_; }

bool HostPool::Prepare(Bytes bytes) {
  while (prepared_ < bytes) {
    const Bytes segment = std::min(kSegment, limit_ - prepared_);
    if (available_() < segment + kLeftToOthers) return false;
    int status = 0;
    do {
      status =
          fallocate(file_, /*mode=*/0, static_cast<off_t>(prepared_), static_cast<off_t>(segment));
    } while (status != 0 && errno == EINTR);
    if (status != 0) return false;
    void* const begin = base_ + prepared_;
    if (driver_->PinHost(begin, segment).ok()) pinned_.push_back(begin);
    prepared_ += segment;
  }
  return true;
}

void* HostPool::Take(Bytes bytes) {
  if (!IsOurs()) return nullptr;
  const std::optional<Bytes> offset = ranges_.Take(bytes);
  if (!offset.has_value()) return nullptr;
  if (!Prepare(*offset + bytes)) {
    ranges_.Give(*offset, bytes);
    return nullptr;
  }
  return base_ + *offset;
}

void HostPool::Give(void* host, Bytes bytes) {
  ranges_.Give(static_cast<Bytes>(static_cast<char*>(host) - base_), bytes);
}

}  // namespace thimble
