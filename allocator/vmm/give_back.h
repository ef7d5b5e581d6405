// For destructors: what the driver refuses to take back is offered once more, since there is nobody
// left to tell and no later moment to try. A driver that refuses twice keeps it.
#pragma once

namespace thimble {

// `call` returns an absl::Status.
template <typename Call>
void GiveBack(Call call) {
  if (!call().ok()) call().IgnoreError();
}

}  // namespace thimble
