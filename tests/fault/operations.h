// Every public operation of an arena, on every path that calls the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/fault/scene.h"

namespace thimble {

struct Operation {
  std::string name;
  ArenaOptions options;  // limit in chunks
  std::function<void(Scene&)>
      prepare;  // prepares the scene so that `run` takes the path of its name
  std::function<absl::Status(Scene&)> run;
  // That it did, when nothing failed.
  std::function<bool(const ArenaStats& before, const ArenaStats& after)> took_route;
  std::uint64_t least_calls = 0;  // driver calls: with fewer, `run` took another path
  absl::StatusCode expected = absl::StatusCode::kOk;  // when nothing fails
  bool opens = false;                                 // makes the arena
  bool closes = false;                                // destroys it
};

const std::vector<Operation>& AllOperations();

inline void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }
inline std::string OperationName(const testing::TestParamInfo<Operation>& info) {
  return info.param.name;
}

}  // namespace thimble
