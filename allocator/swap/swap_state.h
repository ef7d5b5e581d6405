// Where a block's bytes are. The block's address never changes.
//
//            evict               copied out
//   OnDevice -----> Evicting ----------------> OnHost
//      ^  ^            | touched or freed        | touched
//      |  +------------+ (cancel: bytes intact)  v
//      +------------------------------------- Fetching
//                     copied in                  | no memory for it
//                                                v
//                                              OnHost
//
//   W1  OnDevice, Evicting: the device has the bytes.
//   W2  The copy on the host is the only one in OnHost and Fetching.
//   W3  A block that is pinned is not Evicting.
#pragma once

#include <cstdint>

namespace thimble {

enum class SwapState : std::uint8_t { kOnDevice, kEvicting, kOnHost, kFetching };

constexpr bool CanMove(SwapState from, SwapState to) {
  switch (from) {
    case SwapState::kOnDevice:
      return to == SwapState::kEvicting;
    case SwapState::kEvicting:
      return to == SwapState::kOnHost || to == SwapState::kOnDevice;
    case SwapState::kOnHost:
      return to == SwapState::kFetching;
    case SwapState::kFetching:
      return to == SwapState::kOnDevice || to == SwapState::kOnHost;
  }
  return false;
}
static_assert(!CanMove(SwapState::kOnHost, SwapState::kOnDevice), "fetch, never assume");

}  // namespace thimble
