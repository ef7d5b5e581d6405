// Copies that are no ops: between host and device, or within a device.
#pragma once

#include <utility>

#include "absl/types/span.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_plugin/accesses.h"
#include "tf_plugin/announcer.h"

namespace thimble::tf {

// Calls copy(done) while the block of `source` is pinned; done(error) instead if it cannot be. Who
// asked for the copy is not known, it may be Python: so `target` is exposed. Either may be null if
// it is not on the device. `announcer` outlives the copy.
template <typename Copy>
void AnnounceCopy(const Announcer& announcer, const tensorflow::Tensor* source,
                  const tensorflow::Tensor* target, tensorflow::StatusCallback done, Copy copy) {
  constexpr char kName[] = "a copy";
  const void* const from = source == nullptr ? nullptr : BlockOf(*source);
  const void* const to = target == nullptr ? nullptr : BlockOf(*target);
  absl::Status status;
  if (to != nullptr) status = announcer.Expose({&to, 1}, kName);
  if (status.ok() && from != nullptr) {
    status = announcer.Pin({&from, 1}, kName, /*step=*/0, /*flags=*/0);
  }
  if (!status.ok()) return done(status);
  if (from == nullptr) return copy(std::move(done));
  copy([&announcer, from, done = std::move(done)](const absl::Status& copied) {
    announcer.Unpin({&from, 1}, /*touched=*/{}, /*flags=*/0);
    done(copied);
  });
}

}  // namespace thimble::tf
