// Ways in which the simulated driver breaks its rules on request, so that tests can show that
// `thimble selftest` finds such a driver.
#pragma once

#include <bitset>
#include <string>

namespace simgpu {

enum class Defect {
  kAlias,   // the second mapping of a chunk is other memory
  kOnto,    // cuMemMap replaces what is mapped there
  kPart,    // cuMemUnmap accepts a part of a mapping
  kOpen,    // a mapping has access from the start
  kFirst,   // cuMemSetAccess reaches only the first mapping of its range
  kEarly,   // cuMemRelease loses the bytes of a chunk that is mapped
  kLoose,   // cuMemUnmap gives the addresses away
  kDevice,  // a chunk on the host takes memory of the device
  kCount,
};

inline constexpr char kDefectNames[] =
    "alias, onto, part, open, first, early, loose or device, or some of them with ';' between";

class Defects {
 public:
  // False if there is no such defect.
  bool Add(const std::string& name);
  bool Has(Defect defect) const { return all_[static_cast<std::size_t>(defect)]; }

 private:
  std::bitset<static_cast<std::size_t>(Defect::kCount)> all_;
};

}  // namespace simgpu
