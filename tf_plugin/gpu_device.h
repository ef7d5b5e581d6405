// TensorFlow's GPUs, whose ops and copies announce what they use (option `swap`).
#pragma once

namespace thimble::tf {

// Puts them in the place of TensorFlow's own, whose code runs as long as this was not called.
void RegisterAnnouncingGpus();

}  // namespace thimble::tf
