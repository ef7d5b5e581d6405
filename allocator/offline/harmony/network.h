// How concurrent transfers share the links.
//
// Sharing is max-min fair: no transfer can get more without taking from one that has less. So one
// GPU alone has the whole uplink, and two share it.
#pragma once

#include <vector>

#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

class Network {
 public:
  explicit Network(const Server& server);

  // The links on the way, in [0, link_count()), and the most that one transfer gets: infinite
  // unless it goes between two GPUs over PCIe.
  struct Route {
    std::vector<int> links;
    double most = 0;
  };
  // Either end may be kHost.
  const Route& RouteOf(int from, int to) const { return routes_[(from + 1) * ends_ + to + 1]; }
  int link_count() const { return static_cast<int>(capacities_.size()); }
  double capacity(int link) const { return capacities_[link]; }
  // The rate of a transfer that runs alone.
  double Alone(int from, int to) const;

  // Bytes per second for each of `routes` when all run at the same time.
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
