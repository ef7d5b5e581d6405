// What the type of an op tells about the bytes of its tensors. This is the one place that names
// types of ops; the table is in op_rules.cc.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace thimble::tf {

enum class OpRule : std::uint8_t {
  // Reads its inputs and variables, writes its outputs and variables, and keeps nothing that others
  // use: every op that the table does not name.
  kUses,
  // Passes tensors on, or wants their shapes alone: touches no byte of them.
  kForwards,
  // Calls a function, whose ops announce their own uses; but one that XLA compiled is as
  // kExposesVariables.
  kCalls,
  // Passes the buffer of a variable on, or makes a tensor's buffer the variable's: touches no byte,
  // unless the variable is one that is copied at every read.
  kReadsVariable,
  kAssignsVariable,
  // Makes a variable of TensorFlow 1, which other ops get by reference.
  kMakesReference,
  // Its tensors can be used by somebody who is not an op of this device, at any time from now on:
  // they must stay. It may also wait for other ops.
  kExposes,
  // The same, for the result of a function.
  kReturns,
  // The same as kExposes, and for its variables too.
  kExposesVariables,
};

// The rule of an op by its type, such as "MatMul". A type that was seen before costs a hash and a
// load.
OpRule RuleOf(absl::string_view type);

}  // namespace thimble::tf
