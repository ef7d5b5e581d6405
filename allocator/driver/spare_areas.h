// A few memory areas kept for the day the kernel has none left. At its cap Linux refuses even the
// mmap that would give an area back, so a process that got there could never leave. Giving the
// spares up first makes room for that call.
//
// Not thread-safe: HostDriver holds its lock around every call.
#pragma once

namespace thimble {

class SpareAreas {
 public:
  SpareAreas() { Refill(); }
  ~SpareAreas() { Spend(); }
  SpareAreas(const SpareAreas&) = delete;
  SpareAreas& operator=(const SpareAreas&) = delete;

  // Takes as many of kCount areas as the kernel gives now. Cheap if they are all held.
  void Refill();

  // Gives all back to the kernel; false if there was none.
  bool Spend();

 private:
  static constexpr int kCount = 32;

  char* pages_ = nullptr;  // kCount pages, every second one with another protection
  bool full_ = false;
};

}  // namespace thimble
