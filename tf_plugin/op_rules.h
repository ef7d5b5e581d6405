// Tells from the type of an op how it uses the bytes of its tensors. Only the table in op_rules.cc
// names types of ops.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace thimble::tf {

enum class OpRule : std::uint8_t {
  // Reads its inputs and variables, writes its outputs and variables, and keeps nothing that others
  // use. The rule of every op that the table does not name.
  kUses,
  // Passes tensors on or reads only their shapes; touches no byte of them.
  kForwards,
  // Calls a function, whose ops announce their own uses. A call of a function that XLA compiled
  // follows kExposesVariables.
  kCalls,
  // Passes on the buffer of a variable, or gives a tensor's buffer to the variable. Touches no
  // byte, unless the variable is copied at every read.
  kReadsVariable,
  kAssignsVariable,
  // Makes a TensorFlow 1 variable, which other ops get by reference.
  kMakesReference,
  // From now on, someone other than an op of this device may use its tensors at any time, so they
  // must stay. The op may also wait for other ops.
  kExposes,
  // Like kExposes, for the result of a function.
  kReturns,
  // Like kExposes, for its variables too.
  kExposesVariables,
};

// The rule of an op by its type, such as "MatMul". A type that was seen before costs a hash and a
// load.
OpRule RuleOf(absl::string_view type);

}  // namespace thimble::tf
