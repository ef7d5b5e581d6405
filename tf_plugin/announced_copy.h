// Announces copies that are not ops: between host and device, or within a device.
#pragma once

#include <utility>

#include "absl/types/span.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tf_plugin/accesses.h"
#include "tf_plugin/announcer.h"

namespace thimble::tf {

// Pins the block of `source` and calls copy(done); if pinning fails, calls done(error) instead.
// Exposes `target`, because Python may have asked for the copy. `source` or `target` is null if it
// is not on the device. `announcer` outlives the copy.
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
