// The machine to plan for: GPUs, and the links between them and the host.
//
//            host                      switches form trees; an uplink is shared by all below it
//             | uplink (11.5 GiB/s)
//          switch                      a GPU's own link, if it can be a limit
//         /   |   \ link
//     gpu 0  gpu 1  gpu 2              gpu 0 and gpu 1 may have an NVLink of their own
//       \______/ nvlink
//
// Every link has its bandwidth in each direction at once, unless it is half duplex.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/offline/harmony/costs.h"

namespace thimble::harmony {

inline constexpr int kMaxGpus = 8;
inline constexpr int kHost = -1;

struct Switch {
  std::string name;
  int above = kHost;  // index of the switch above it
  double uplink_bytes_per_second = 0;
};

struct Gpu {
  int under = 0;                     // index of its switch
  double link_bytes_per_second = 0;  // 0: never the limit
};

struct Nvlink {
  int a = 0;
  int b = 0;
  double bytes_per_second = 0;
};

struct Server {
  std::vector<Switch> switches;
  std::vector<Gpu> gpus;
  std::vector<Nvlink> nvlinks;
  double memory_bytes = 0;              // of each GPU
  double peer_bytes_per_second = 0;     // the most for one transfer between GPUs over PCIe
  double message_bytes_per_second = 0;  // between processes: rules harmony only
  double host_bytes = 0;                // 0: enough
  double update_speed = 1;              // of the host, relative to the profile's
  double gpu_bytes_per_second = 0;      // between a GPU and its own memory
  bool half_duplex = false;

  int gpu_count() const { return static_cast<int>(gpus.size()); }
  // What all GPUs together can exchange with the host, each way.
  double HostBytesPerSecond() const;
  // To update so many bytes of weights on a GPU: it reads and writes them and the optimizer state,
  // and reads the gradient.
  double UpdateSeconds(double weight_bytes) const {
    return weight_bytes * (2 + 2 * kStateCopies + 1) / gpu_bytes_per_second;
  }
};

// The server of the published figures: one switch, 11.5 GiB/s to the host for all GPUs together,
// 8.2 GiB/s between any two of them.
Server PublishedServer(int gpus, double memory_bytes);

// A server as text, one thing per line, in any order:
//   switch NAME uplink RATE [under NAME]
//   gpu NUMBER switch NAME [link RATE]
//   nvlink NUMBER NUMBER RATE
//   p2p RATE | message RATE | gpu_memory RATE | host_memory BYTES | update_speed NUMBER
//   duplex full|half
// RATE is bytes per second ("11.5GiB"), # begins a comment. Only switches and GPUs are required.
// Refuses the first wrong line with its place, the text and a remedy.
absl::StatusOr<Server> ParseTopology(absl::string_view text, absl::string_view name,
                                     double memory_bytes);
absl::StatusOr<Server> ReadTopologyFile(const std::string& path, double memory_bytes);

}  // namespace thimble::harmony
