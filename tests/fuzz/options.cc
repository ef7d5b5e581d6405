// ParseOptions: any text is either refused with a message, or it means the same when it is written
// out and read again, or is made a device's own.
#include "allocator/arena/options.h"

#include <string>

#include "tests/fuzz/input.h"

namespace {

bool AreEqual(const thimble::Options& a, const thimble::Options& b) {
  return a.device == b.device && a.memory == b.memory && a.log == b.log &&
         a.arena.limit == b.arena.limit && a.arena.preallocate == b.arena.preallocate &&
         a.arena.chunk_bytes == b.arena.chunk_bytes && a.arena.stitch == b.arena.stitch &&
         a.arena.magazines == b.arena.magazines && a.arena.retry == b.arena.retry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto options = thimble::ParseOptions(thimble::Input(data, size).Rest());
  if (!options.ok()) {
    FUZZ_EXPECT(options.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(!options.status().message().empty());
    return 0;
  }
  const std::string text = thimble::FormatOptions(*options);
  const auto again = thimble::ParseOptions(text);
  FUZZ_EXPECT(again.ok());
  FUZZ_EXPECT(AreEqual(*options, *again));
  FUZZ_EXPECT(thimble::FormatOptions(*again) == text);
  const auto of_device = thimble::DeviceOptions(text, "", "", 1);
  FUZZ_EXPECT(of_device.ok() && thimble::ParseOptions(*of_device).ok());
  return 0;
}
