#include "allocator/offline/harmony/network.h"

#include <algorithm>
#include <limits>

namespace thimble::harmony {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

// Link numbers: uplinks of switches, links of GPUs, NVLinks; each up (even) and down (odd).
Network::Network(const Server& server) : ends_(server.gpu_count() + 1) {
  const auto add = [&](double capacity) {
    capacities_.push_back(capacity);
    capacities_.push_back(capacity);
  };
  for (const Switch& one : server.switches) add(one.uplink_bytes_per_second);
  for (const Gpu& gpu : server.gpus) {
    add(gpu.link_bytes_per_second > 0 ? gpu.link_bytes_per_second : kNoLimit);
  }
  for (const Nvlink& link : server.nvlinks) add(link.bytes_per_second);
  for (int from = kHost; from < server.gpu_count(); ++from) {
    for (int to = kHost; to < server.gpu_count(); ++to) {
      routes_.push_back(from == to ? Route{} : MakeRoute(server, from, to));
    }
  }
}

Network::Route Network::MakeRoute(const Server& server, int from, int to) const {
  Route route;
  const int switches = static_cast<int>(server.switches.size());
  if (from != kHost && to != kHost) {
    for (std::size_t i = 0; i < server.nvlinks.size(); ++i) {
      const Nvlink& link = server.nvlinks[i];
      const bool is_up = link.a == from && link.b == to;
      if (!is_up && !(link.a == to && link.b == from)) continue;
      const int number = switches + server.gpu_count() + static_cast<int>(i);
      route.links.push_back(2 * number + (is_up ? 0 : 1));
      route.most = kNoLimit;
      return route;
    }
  }
  route.most = from == kHost || to == kHost ? kNoLimit : server.peer_bytes_per_second;
  // Switches from an end up to the host; a route does not cross switches above both ends.
  const auto way = [&](int end) {
    std::vector<int> above;
    if (end == kHost) return above;
    for (int at = server.gpus[end].under; at != kHost; at = server.switches[at].above) {
      above.push_back(at);
    }
    return above;
  };
  std::vector<int> up = way(from);
  std::vector<int> down = way(to);
  while (!up.empty() && !down.empty() && up.back() == down.back()) {
    up.pop_back();
    down.pop_back();
  }
  if (from != kHost) route.links.push_back(2 * (switches + from));
  for (const int at : up) route.links.push_back(2 * at);
  for (const int at : down) route.links.push_back(2 * at + 1);
  if (to != kHost) route.links.push_back(2 * (switches + to) + 1);
  if (server.half_duplex) {
    for (int& link : route.links) link -= link % 2;
  }
  const auto is_free = [&](int link) { return capacities_[link] == kNoLimit; };
  route.links.erase(std::remove_if(route.links.begin(), route.links.end(), is_free),
                    route.links.end());
  return route;
}

double Network::Alone(int from, int to) const {
  const Route& route = RouteOf(from, to);
  double rate = route.most;
  for (const int link : route.links) rate = std::min(rate, capacities_[link]);
  return rate;
}

// The link with the least per user sets the rate of its users; then repeat for the others.
void Network::Share(const std::vector<const Route*>& routes, std::vector<double>& rates) const {
  left_ = capacities_;
  users_.assign(capacities_.size(), 0);
  rates.assign(routes.size(), -1);
  for (const Route* route : routes) {
    for (const int link : route->links) ++users_[link];
  }
  for (std::size_t done = 0; done < routes.size();) {
    double least = kNoLimit;
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (rates[i] >= 0) continue;
      least = std::min(least, routes[i]->most);
      for (const int link : routes[i]->links) least = std::min(least, left_[link] / users_[link]);
    }
    const double limit = least * (1 + 1e-12);
    const std::size_t before = done;
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (rates[i] >= 0) continue;
      bool is_tight = routes[i]->most <= limit;
      for (const int link : routes[i]->links) {
        is_tight = is_tight || left_[link] / users_[link] <= limit;
      }
      if (!is_tight) continue;
      rates[i] = least;
      ++done;
      for (const int link : routes[i]->links) {
        left_[link] = std::max(0.0, left_[link] - least);
        --users_[link];
      }
    }
    if (done == before) break;
  }
}

}  // namespace thimble::harmony
