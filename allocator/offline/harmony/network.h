// Who gets how much of which link, while several transfers run at once.
//
// Every link is shared fairly: a transfer gets as much as it can without another one getting less
// than it (max-min). So one GPU alone has the uplink for itself, and two share it.
#pragma once

#include <vector>

#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

class Network {
 public:
  explicit Network(const Server& server);

  // The links on the way, in [0, link_count()), and the most that one transfer gets; infinite
  // unless it is between two GPUs over PCIe.
  struct Route {
    std::vector<int> links;
    double most = 0;
  };
  // Either end may be kHost.
  const Route& RouteOf(int from, int to) const { return routes_[(from + 1) * ends_ + to + 1]; }
  int link_count() const { return static_cast<int>(capacities_.size()); }
  double capacity(int link) const { return capacities_[link]; }
  // What a transfer gets when it is alone.
  double Alone(int from, int to) const;

  // Bytes per second for each of `routes`, all at the same time.
  void Share(const std::vector<const Route*>& routes, std::vector<double>& rates) const;

 private:
  Route MakeRoute(const Server& server, int from, int to) const;

  int ends_ = 0;  // GPUs and the host
  std::vector<double> capacities_;
  std::vector<Route> routes_;
  mutable std::vector<double> left_;  // scratch of Share()
  mutable std::vector<int> users_;
};

}  // namespace thimble::harmony
