// TensorFlow's GPUs, on which running out of memory harms no variable (guarded_device.h), and whose
// ops and copies announce what they use with option `swap`.
#pragma once

namespace thimble::tf {

// Puts them in the place of TensorFlow's own.
void RegisterGpus(bool announce);

}  // namespace thimble::tf
