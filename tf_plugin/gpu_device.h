// TensorFlow's GPU devices, guarded so that running out of memory harms no variable
// (guarded_device.h). With option `swap`, their ops and copies announce what they use.
#pragma once

namespace thimble::tf {

// Replaces TensorFlow's own GPU devices with these.
void RegisterGpus(bool announce);

}  // namespace thimble::tf
