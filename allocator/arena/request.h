// What a caller asks for. It is made where a request enters the core, and passed on as it is.
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/plan/site_table.h"
#include "allocator/stitch/block.h"

namespace thimble {

struct Request {
  Bytes bytes = 0;
  Bytes alignment = kUnit;  // a power of two; 0 means kUnit
  StreamId stream{};
  std::uint64_t key = 0;    // who asks
  std::uint64_t step = 0;   // of training; 0 if that is not known
  bool long_lived = false;  // whether the block is expected to outlive many steps
  SiteId site = kNoSite;    // set by the Space itself

  // What it may need when its place must be searched for without knowing its alignment.
  Bytes PaddedBytes() const { return bytes + alignment - kUnit; }
};

}  // namespace thimble
