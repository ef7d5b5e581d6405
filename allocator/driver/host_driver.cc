#include "allocator/driver/host_driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/fork.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/warn.h"

namespace thimble {
namespace {

// First fit needs at most total * log2(largest / smallest) bytes of the file (Robson), so with
// 2^56 at most in use, and at most 2^6 for the logarithm, the file never ends.
constexpr Bytes kFileBytes = Bytes{1} << 62;
constexpr Bytes kMaxTotalBytes = Bytes{1} << 56;

// Of all host drivers in this process, because the kernel's cap is one per process.
std::atomic<std::uint64_t> process_areas{0};

Bytes PageBytes() { return static_cast<Bytes>(sysconf(_SC_PAGESIZE)); }

absl::Status SystemError(const char* what) {
  const int code = errno;
  const std::string message = absl::StrCat(what, ": ", std::strerror(code));
  switch (code) {
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

// Vacant addresses: nothing behind them, not even a promise of swap space.
absl::StatusOr<Address> MapVacant(Address hint, Bytes bytes, int fixed) {
  void* const got = mmap(ToPointer(hint), bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (got == MAP_FAILED) return SystemError("mmap of addresses");
  return ToAddress(got);
}

// Vacant addresses that begin at a multiple of `alignment`. mmap aligns to pages only, so more is
// taken and both ends are cut off. A kernel that has no area left for the cut keeps what it must:
// addresses, never memory.
absl::StatusOr<Address> MapAligned(Bytes bytes, Bytes alignment) {
  const std::optional<Bytes> padded = CheckedAdd(bytes, alignment - PageBytes());
  if (!padded) return absl::ResourceExhaustedError("no address space is that large");
  THIMBLE_ASSIGN_OR_RETURN(const Address got, MapVacant(Address(), *padded, 0));
  const Address address(RoundUp(got.value(), alignment));
  const Bytes head = address - got;
  const Bytes tail = *padded - bytes - head;
  if (head > 0 && munmap(ToPointer(got), head) != 0) {
    const absl::Status status = SystemError("munmap of padding");
    munmap(ToPointer(got), *padded);
    return status;
  }
  if (tail > 0 && munmap(ToPointer(address + bytes), tail) != 0) {
    const absl::Status status = SystemError("munmap of padding");
    munmap(ToPointer(address), bytes + tail);
    return status;
  }
  return address;
}

// A part of the file at addresses that are reserved, never in a core dump. Linux replaces what was
// mapped there as one step: no thread can meet the place between the two.
absl::Status MapFile(int file, const Window& window) {
  void* const at = ToPointer(window.address);
  const int protection = window.accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
  const int sharing = window.is_private ? MAP_PRIVATE : MAP_SHARED;
  if (mmap(at, window.file.bytes, protection, sharing | MAP_FIXED | MAP_NORESERVE, file,
           static_cast<off_t>(window.file.offset)) == MAP_FAILED) {
    return SystemError("mmap of a chunk");
  }
  if (madvise(at, window.file.bytes, MADV_DONTDUMP) == 0) return absl::OkStatus();
  return SystemError("madvise");
}

// Opens the range. If the kernel stops half-way, closes again what was closed before.
absl::Status OpenAccess(AddressRange range, const std::vector<AddressRange>& closed) {
  if (mprotect(ToPointer(range.begin), range.bytes(), PROT_READ | PROT_WRITE) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = SystemError("mprotect");
  for (const AddressRange& one : closed) mprotect(ToPointer(one.begin), one.bytes(), PROT_NONE);
  return status;
}

std::uint64_t DefaultMaxAreas() {
  constexpr std::uint64_t kLinuxDefault = 65530;
  std::ifstream limit("/proc/sys/vm/max_map_count");
  std::uint64_t areas = 0;
  if (!(limit >> areas)) areas = kLinuxDefault;
  return areas / 4 * 3;
}

absl::Status CheckOptions(const HostOptions& options) {
  const Bytes page = PageBytes();
  if (!IsPowerOfTwo(options.granularity) || options.granularity < page) {
    return absl::InvalidArgumentError(absl::StrCat("granularity ", options.granularity,
                                                   " is not a power of two of at least ", page));
  }
  if (options.total_bytes == 0 || options.total_bytes > kMaxTotalBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("total_bytes ", options.total_bytes, " is not within 1 and 2^56"));
  }
  return absl::OkStatus();
}

// A sparse file of constant size that only this process can reach.
absl::StatusOr<int> OpenFile() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kFileBytes) {
    // ftruncate would kill the process (SIGXFSZ) instead of failing.
    return absl::ResourceExhaustedError("the limit on file sizes (ulimit -f) must be lifted");
  }
  const int file = memfd_create("thimble", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return SystemError("memfd_create");
  if (ftruncate(file, static_cast<off_t>(kFileBytes)) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    const absl::Status status = SystemError("setting up the memfd");
    close(file);
    return status;
  }
  return file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostDriver>> HostDriver::Open(const HostOptions& options) {
  THIMBLE_RETURN_IF_ERROR(CheckOptions(options));
  THIMBLE_ASSIGN_OR_RETURN(const int file, OpenFile());
  std::unique_ptr<HostDriver> driver(new HostDriver(options, file));
  AddForkListener(LockRank::kDriver, driver.get());
  return driver;
}

HostDriver::HostDriver(const HostOptions& options, int file)
    : properties_{"host", options.granularity, options.total_bytes},
      max_areas_(options.max_areas != 0 ? options.max_areas : DefaultMaxAreas()),
      file_(file),
      table_(options.granularity),
      file_ranges_(kFileBytes) {}

HostDriver::~HostDriver() {
  RemoveForkListener(this);
  MutexLock lock(&mutex_);
  for (const AddressRange& range : table_.Reservations()) {
    munmap(ToPointer(range.begin), range.bytes());
  }
  process_areas.fetch_sub(booked_areas_);
  close(file_);
}

absl::Status HostDriver::BookAreas() {
  const std::uint64_t others = process_areas.load() - booked_areas_;
  if (table_.areas() > booked_areas_ && others + table_.areas() > max_areas_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", max_areas_,
                     " memory areas: raise vm.max_map_count, or map chunks in the order made"));
  }
  SettleAreas();
  return absl::OkStatus();
}

void HostDriver::SettleAreas() {
  process_areas.fetch_add(table_.areas() - booked_areas_);  // wraps around where it is less
  booked_areas_ = table_.areas();
}

template <typename Function>
absl::Status HostDriver::FreeAreas(Function function) {
  absl::Status status = function();
  if (absl::IsResourceExhausted(status) && spare_areas_.Spend()) status = function();
  spare_areas_.Refill();
  return status;
}

absl::StatusOr<Address> HostDriver::Reserve(Bytes bytes, Bytes alignment) {
  if (!IsPowerOfTwo(alignment) || alignment < properties_.granularity) {
    return absl::InvalidArgumentError(absl::StrCat("R5: alignment ", alignment,
                                                   " is not a power of two of at least ",
                                                   properties_.granularity));
  }
  MutexLock lock(&mutex_);
  THIMBLE_RETURN_IF_ERROR(table_.CheckSize(bytes));
  THIMBLE_ASSIGN_OR_RETURN(const Address address, MapAligned(bytes, alignment));
  table_.AddReservation({address, address + bytes});
  absl::Status status = BookAreas();
  if (status.ok()) return address;
  munmap(ToPointer(address), bytes);
  table_.RemoveReservation(address);
  return status;
}

absl::Status HostDriver::Release(Address address, Bytes bytes) {
  MutexLock lock(&mutex_);
  THIMBLE_RETURN_IF_ERROR(table_.CheckRelease({address, address + bytes}));
  // The kernel may have joined this with a neighbour, and then needs one more area to part them.
  THIMBLE_RETURN_IF_ERROR(FreeAreas([&] {
    return munmap(ToPointer(address), bytes) == 0 ? absl::OkStatus() : SystemError("munmap");
  }));
  table_.RemoveReservation(address);
  SettleAreas();
  return absl::OkStatus();
}

absl::StatusOr<ChunkHandle> HostDriver::Create(Bytes bytes) {
  MutexLock lock(&mutex_);
  THIMBLE_RETURN_IF_ERROR(table_.CheckSize(bytes));
  ReclaimFromChildren();
  const Bytes free_bytes = properties_.total_bytes - taken_bytes();
  if (bytes > free_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a chunk of ", bytes, " bytes: ", free_bytes,
                                                     " of ", properties_.total_bytes, " are free"));
  }
  // The file is so much larger than any device that first fit always finds a place.
  return table_.AddChunk({file_ranges_.Take(bytes).value(), bytes});
}

absl::Status HostDriver::Destroy(ChunkHandle chunk) {
  MutexLock lock(&mutex_);
  THIMBLE_ASSIGN_OR_RETURN(const std::optional<DeadRange> dead, table_.RemoveChunk(chunk));
  if (dead) FreeBytes(*dead);
  return absl::OkStatus();
}

absl::StatusOr<ChunkHandle> HostDriver::Share(ChunkHandle chunk) {
  MutexLock lock(&mutex_);
  return table_.ShareChunk(chunk);
}

absl::Status HostDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  MutexLock lock(&mutex_);
  ReclaimFromChildren();
  THIMBLE_ASSIGN_OR_RETURN(const Window window, table_.Map({address, address + bytes}, chunk));
  absl::Status status = BookAreas();
  if (status.ok()) {
    status = MapFile(file_, window);
    if (status.ok()) return status;
    // If even this is refused, the addresses are still without access: all that vacant promises.
    MapVacant(address, bytes, MAP_FIXED).IgnoreError();
  }
  table_.Unmap(address);  // the chunk has its handle, so no byte dies here
  SettleAreas();
  return status;
}

absl::Status HostDriver::Unmap(Address address, Bytes bytes) {
  MutexLock lock(&mutex_);
  THIMBLE_RETURN_IF_ERROR(table_.CheckUnmap({address, address + bytes}));
  THIMBLE_RETURN_IF_ERROR(FreeAreas([&] { return MapVacant(address, bytes, MAP_FIXED).status(); }));
  const std::optional<DeadRange> dead = table_.Unmap(address);
  SettleAreas();
  if (dead) FreeBytes(*dead);
  return absl::OkStatus();
}

absl::Status HostDriver::SetAccess(Address address, Bytes bytes) {
  const AddressRange range{address, address + bytes};
  MutexLock lock(&mutex_);
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<AddressRange> granted, table_.GrantAccess(range));
  absl::Status status = BookAreas();
  if (status.ok()) status = OpenAccess(range, granted);
  if (status.ok()) return status;
  table_.RevokeAccess(granted);
  SettleAreas();
  return status;
}

void HostDriver::FreeBytes(DeadRange dead) {
  if (dead.frozen && HasForkChildren()) {
    left_to_children_.push_back(dead.file);
    left_to_children_bytes_ += dead.file.bytes;
  } else {
    Punch(dead.file);
  }
}

void HostDriver::Punch(FileRange dead) {
  // If the kernel refuses, the pages stay until the range is used again: nothing is lost.
  while (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(dead.offset), static_cast<off_t>(dead.bytes)) != 0 &&
         errno == EINTR) {
  }
  file_ranges_.Give(dead.offset, dead.bytes);
}

void HostDriver::ReclaimFromChildren() {
  if (!table_.has_frozen() && left_to_children_.empty()) return;
  if (HasForkChildren()) return;
  table_.Thaw();
  for (const FileRange& dead : left_to_children_) Punch(dead);
  left_to_children_.clear();
  left_to_children_bytes_ = 0;
}

void HostDriver::LeaveToChild(Address device, const void* host, Bytes bytes) {
  void* const copy =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) {
    Warn(
        absl::StrFormat("the child of this fork has no memory for %d bytes that are swapped out: "
                        "it ends if it uses them",
                        bytes));
    return;
  }
  std::memcpy(copy, host, bytes);
  MutexLock lock(&mutex_);
  for_child_.push_back({device, copy, bytes});
}

void HostDriver::BeforeFork() {
  mutex_.Lock();
  for (const Window& window : table_.Freeze()) {
    const absl::Status status = MapFile(file_, window);
    if (status.ok()) continue;
    // Bytes that the child cannot have for itself it must not have at all.
    madvise(ToPointer(window.address), window.file.bytes, MADV_DONTFORK);
    Warn(
        absl::StrFormat("the child of this fork gets no copy of %d bytes and ends if it uses "
                        "them (%s)",
                        window.file.bytes, status.message()));
  }
  SettleAreas();
}

void HostDriver::AfterFork(ForkSide side) {
  for (const ForChild& one : for_child_) {
    if (side == ForkSide::kParent) {
      munmap(one.copy, one.bytes);
    } else {
      mremap(one.copy, one.bytes, one.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, ToPointer(one.device));
    }
  }
  for_child_.clear();
  mutex_.Unlock();
}

absl::Status HostDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  if (bytes == 0) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    THIMBLE_RETURN_IF_ERROR(
        table_.Translate({device, device + bytes}, /*need_access=*/true).status());
  }
  // Without the lock: as on a GPU, whoever unmaps a range that is being copied has a bug.
  if (direction == CopyDirection::kToDevice) {
    std::memcpy(ToPointer(device), host, bytes);
  } else {
    std::memcpy(host, ToPointer(device), bytes);
  }
  return absl::OkStatus();
}

// There is nothing to do, but what CUDA forbids is refused.
absl::Status HostDriver::PinHost(void* host, Bytes bytes) {
  const Address begin = ToAddress(host);
  const Bytes page = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  if (begin % page != 0 || bytes == 0 || bytes % page != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d bytes at %#x are not whole pages", bytes, begin.value()));
  }
  MutexLock lock(&mutex_);
  const auto next = pinned_.lower_bound(begin + bytes);
  if (next != pinned_.begin() && std::prev(next)->first + std::prev(next)->second > begin) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d bytes at %#x are pinned in part already", bytes, begin.value()));
  }
  pinned_.emplace_hint(next, begin, bytes);
  return absl::OkStatus();
}

absl::Status HostDriver::UnpinHost(void* host) {
  MutexLock lock(&mutex_);
  if (pinned_.erase(ToAddress(host)) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("nothing was pinned at %#x", ToAddress(host).value()));
}

absl::StatusOr<StreamSeq> HostDriver::Record(StreamId stream) {
  MutexLock lock(&mutex_);
  return ++recorded_[stream];
}

absl::StatusOr<bool> HostDriver::Passed(StreamId stream, StreamSeq point) {
  MutexLock lock(&mutex_);
  const auto found = recorded_.find(stream);
  const StreamSeq last = found == recorded_.end() ? StreamSeq() : found->second;
  if (point > last) {
    return absl::InvalidArgumentError(absl::StrCat(
        "point ", point.value(), " of the stream was never recorded; the last is ", last.value()));
  }
  return true;
}

absl::Status HostDriver::Wait(StreamId stream, StreamSeq point) {
  return Passed(stream, point).status();
}

absl::StatusOr<MemoryInfo> HostDriver::GetMemoryInfo() {
  MutexLock lock(&mutex_);
  return MemoryInfo{properties_.total_bytes - taken_bytes(), properties_.total_bytes};
}

absl::StatusOr<Bytes> HostDriver::Translate(Address address) const {
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<FileRange> ranges, TranslateRange(address, 1));
  return ranges.front().offset;
}

absl::StatusOr<std::vector<FileRange>> HostDriver::TranslateRange(Address address,
                                                                  Bytes bytes) const {
  MutexLock lock(&mutex_);
  return table_.Translate({address, address + bytes}, /*need_access=*/false);
}

std::uint64_t HostDriver::areas() const {
  MutexLock lock(&mutex_);
  return table_.areas();
}

void HostDriver::CheckInvariants() const {
  MutexLock lock(&mutex_);
  table_.CheckInvariants();
  file_ranges_.CheckInvariants();
}

}  // namespace thimble
