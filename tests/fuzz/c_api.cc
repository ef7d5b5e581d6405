// thimble.h with hostile arguments: null pointers, absurd sizes and alignments, pointers that are
// not blocks, structs of any size. Every call returns, and the arena stays whole.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "allocator/thimble.h"
#include "tests/fuzz/input.h"

namespace {

using thimble::Input;

class HostileCaller {
 public:
  explicit HostileCaller(Input* input) : input_(*input) {
    constexpr std::array<const char*, 4> kOptions = {
        "device:cpu,memory:1MiB,chunk:64KiB",
        "device:cpu,memory:1MiB,chunk:64KiB,preallocate:on",
        "device:cpu,memory:1MiB,chunk:64KiB,stitch:off",
        "device:cpu,memory:8MiB,limit:512KiB,chunk:128KiB,retry_ms:1",
    };
    FUZZ_EXPECT(thimble_create(kOptions[input_.Index(kOptions.size())], &arena_) == THIMBLE_OK);
  }
  ~HostileCaller() {
    for (void* const block : blocks_) {
      FUZZ_EXPECT(thimble_free(arena_, block, 0) == THIMBLE_OK);
    }
    thimble_stats stats = {};
    stats.struct_size = sizeof(stats);
    FUZZ_EXPECT(thimble_get_stats(arena_, &stats) == THIMBLE_OK);
    FUZZ_EXPECT(stats.in_use == 0 && stats.live_blocks == 0);
    thimble_destroy(arena_);
  }

  void Call() {
    switch (input_.Byte() % 10) {
      case 0:
      case 1:
      case 2:
        return Allocate();
      case 3:
        return Free();
      case 4:
        return FreeAnything();
      case 5:
        return Fill<thimble_stats>(
            [](auto* arena, auto* out) { return thimble_get_stats(arena, out); });
      case 6:
        return Fill<thimble_oom>(
            [](auto* arena, auto* out) { return thimble_explain(arena, out); });
      case 7:
        return Query();
      case 8:
        return Snapshot();
      default:
        return Others();
    }
  }

 private:
  // Now and then no arena at all.
  thimble_arena* MaybeArena() { return input_.Byte() == 0 ? nullptr : arena_; }

  void Expect(thimble_status status, bool may_be_ok) {
    FUZZ_EXPECT(status >= THIMBLE_OK && status <= THIMBLE_INTERNAL);
    FUZZ_EXPECT(may_be_ok || status != THIMBLE_OK);
    FUZZ_EXPECT(status == THIMBLE_OK || std::strlen(thimble_last_error()) > 0);
    FUZZ_EXPECT(thimble_check(arena_) == THIMBLE_OK);
  }

  void Allocate() {
    thimble_arena* const arena = MaybeArena();
    const std::size_t bytes = input_.Size(63);
    const std::size_t alignment = input_.Bit() ? input_.Size(63) : 0;
    void* block = this;
    void** const out = input_.Byte() == 0 ? nullptr : &block;
    const thimble_status status =
        thimble_allocate(arena, bytes, alignment, input_.Byte(), input_.Byte(), out);
    const bool is_power = (alignment & (alignment - 1)) == 0 && alignment <= (2u << 20);
    Expect(status, arena != nullptr && out != nullptr && (is_power || bytes == 0));
    if (status != THIMBLE_OK) {
      FUZZ_EXPECT(out == nullptr || arena == nullptr || block == nullptr);
      return;
    }
    FUZZ_EXPECT((block == nullptr) == (bytes == 0));
    if (block == nullptr) return;
    FUZZ_EXPECT(alignment == 0 || reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    static_cast<char*>(block)[0] = 1;
    static_cast<char*>(block)[bytes - 1] = 1;
    blocks_.push_back(block);
  }

  void Free() {
    if (blocks_.empty()) return;
    std::swap(blocks_[input_.Index(blocks_.size())], blocks_.back());
    freed_ = blocks_.back();
    blocks_.pop_back();
    Expect(thimble_free(arena_, freed_, input_.Byte()), true);
  }

  std::uintptr_t AnyBlock() const {
    return reinterpret_cast<std::uintptr_t>(blocks_.empty() ? this : blocks_.back());
  }
  void* Anything() {
    switch (input_.Byte() % 4) {
      case 0:
        return freed_;
      case 1:
        return reinterpret_cast<void*>(input_.Word());
      case 2:
        return reinterpret_cast<void*>(AnyBlock() + input_.Size(20));
      default:
        return nullptr;
    }
  }
  bool IsHeld(const void* block) const {
    return std::find(blocks_.begin(), blocks_.end(), block) != blocks_.end();
  }

  void FreeAnything() {
    thimble_arena* const arena = MaybeArena();
    void* const block = Anything();
    if (IsHeld(block)) return;
    Expect(thimble_free(arena, block, input_.Byte()), arena != nullptr && block == nullptr);
  }

  template <typename Struct, typename Getter>
  void Fill(Getter get) {
    thimble_arena* const arena = MaybeArena();
    std::vector<std::size_t> room(sizeof(Struct) / sizeof(std::size_t) + 4);
    auto* const out = reinterpret_cast<Struct*>(room.data());
    out->struct_size = input_.Byte() % (room.size() * sizeof(std::size_t));
    const bool has_size = out->struct_size >= sizeof(std::size_t);
    Expect(get(arena, input_.Byte() == 0 ? nullptr : out), arena != nullptr && has_size);
  }

  void Query() {
    const void* const block = Anything();
    Fill<thimble_block_info>([&](auto* arena, auto* out) {
      const thimble_status status = thimble_query(arena, block, out);
      FUZZ_EXPECT(status != THIMBLE_OK || IsHeld(block));
      thimble_block_info around = {};
      around.struct_size = sizeof(around);
      if (thimble_query_inside(arena, block, &around) == THIMBLE_OK) {
        FUZZ_EXPECT(IsHeld(reinterpret_cast<void*>(around.address)));
        FUZZ_EXPECT(reinterpret_cast<std::uintptr_t>(block) - around.address < around.bytes);
      }
      return status;
    });
  }

  void Snapshot() {
    thimble_arena* const arena = MaybeArena();
    std::size_t bytes = input_.Size(16);
    std::vector<char> buffer(std::min<std::size_t>(bytes, 1 << 17));
    bytes = buffer.size();
    char* const out = input_.Bit() ? buffer.data() : nullptr;
    const thimble_status status =
        thimble_snapshot(arena, out, input_.Byte() == 0 ? nullptr : &bytes);
    Expect(status, arena != nullptr);
    if (status == THIMBLE_OK && out != nullptr) FUZZ_EXPECT(std::strlen(out) + 1 == bytes);
  }

  void Peak() {
    const bool is_set = !marks_.empty() && input_.Bit();
    const uint64_t mark = is_set ? marks_.back() : input_.Word() | uint64_t{1} << 63;
    Fill<thimble_peaks>([&](auto* arena, auto* out) {
      const thimble_status status = thimble_peak_read(arena, mark, out);
      FUZZ_EXPECT(status != THIMBLE_OK || is_set);
      return status;
    });
    if (input_.Bit()) return;
    Expect(thimble_peak_end(arena_, mark), is_set);
    if (is_set) marks_.pop_back();
  }

  void Explain() {
    std::size_t bytes = input_.Byte() * 16;
    std::vector<char> buffer(bytes);
    char* const out = input_.Bit() ? buffer.data() : nullptr;
    thimble_arena* const arena = MaybeArena();
    const thimble_status status =
        thimble_explain_text(arena, input_.Bit() ? "op" : nullptr, out, &bytes);
    Expect(status, arena != nullptr);
    if (status == THIMBLE_OK && out != nullptr) FUZZ_EXPECT(std::strlen(out) + 1 == bytes);
  }

  void Others() {
    thimble_arena* const arena = MaybeArena();
    switch (input_.Byte() % 9) {
      case 0:
        return Expect(thimble_trim(arena, input_.Size(63), nullptr), arena != nullptr);
      case 1:
        return Expect(thimble_reset_peaks(arena), arena != nullptr);
      case 2:
        return Expect(thimble_mark_step(arena), arena != nullptr);
      case 3: {
        const char* const path = input_.Bit() ? "/dev/null" : nullptr;
        return Expect(thimble_log_start(arena, path), arena != nullptr && path != nullptr);
      }
      case 4:
        return Expect(thimble_log_stop(arena), arena != nullptr);
      case 5: {
        uint64_t mark = 0;
        const thimble_status status = thimble_peak_begin(arena, input_.Bit() ? &mark : nullptr);
        if (status == THIMBLE_OK) marks_.push_back(mark);
        return Expect(status, arena != nullptr);
      }
      case 6:
        return Peak();
      case 7:
        return Explain();
      default:
        thimble_destroy(nullptr);
        FUZZ_EXPECT(thimble_options(arena) != nullptr);
    }
  }

  Input& input_;
  thimble_arena* arena_ = nullptr;
  std::vector<void*> blocks_;
  std::vector<uint64_t> marks_;
  void* freed_ = nullptr;  // the last one; it may be held again
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  HostileCaller caller(&input);
  while (!input.empty()) caller.Call();
  return 0;
}
