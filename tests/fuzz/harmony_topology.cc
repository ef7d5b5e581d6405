// ParseTopology: any text is either refused with its place, or it is a server whose switches form
// trees, and on which every transfer gets something of every link and no link more than it has.
#include <vector>

#include "absl/strings/match.h"
#include "allocator/offline/harmony/network.h"
#include "allocator/offline/harmony/server.h"
#include "tests/fuzz/input.h"

namespace thimble::harmony {
namespace {

void CheckServer(const Server& server) {
  FUZZ_EXPECT(server.gpu_count() >= 1 && server.gpu_count() <= kMaxGpus);
  const int switches = static_cast<int>(server.switches.size());
  for (int i = 0; i < switches; ++i) {
    FUZZ_EXPECT(server.switches[i].above >= kHost && server.switches[i].above < i);
  }
  for (const Gpu& gpu : server.gpus) FUZZ_EXPECT(gpu.under >= 0 && gpu.under < switches);
  FUZZ_EXPECT(server.update_speed > 0 && server.HostBytesPerSecond() > 0);
}

// All at once, from every end to every other.
void CheckNetwork(const Server& server) {
  const Network network(server);
  std::vector<const Network::Route*> routes;
  std::vector<double> alone;
  for (int from = kHost; from < server.gpu_count(); ++from) {
    for (int to = kHost; to < server.gpu_count(); ++to) {
      if (from == to) continue;
      routes.push_back(&network.RouteOf(from, to));
      alone.push_back(network.Alone(from, to));
    }
  }
  std::vector<double> rates;
  network.Share(routes, rates);
  std::vector<double> carried(network.link_count(), 0);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    FUZZ_EXPECT(rates[i] > 0 && rates[i] <= alone[i] * (1 + 1e-9));
    for (const int link : routes[i]->links) carried[link] += rates[i];
  }
  for (int link = 0; link < network.link_count(); ++link) {
    FUZZ_EXPECT(carried[link] <= network.capacity(link) * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace thimble::harmony

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thimble::harmony;
  const auto server =
      ParseTopology(thimble::Input(data, size).Rest(), "fuzz.topology", /*memory_bytes=*/1e10);
  if (!server.ok()) {
    FUZZ_EXPECT(server.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StartsWith(server.status().message(), "fuzz.topology:"));
    return 0;
  }
  CheckServer(*server);
  CheckNetwork(*server);
  return 0;
}
