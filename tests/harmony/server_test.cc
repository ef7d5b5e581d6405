// Topologies, and how links are shared.
#include "allocator/offline/harmony/server.h"

#include <string>
#include <vector>

#include "allocator/offline/harmony/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::harmony {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kGib = 1024.0 * 1024 * 1024;

std::string Message(const std::string& text) {
  const auto server = ParseTopology(text, "t", 1e9);
  return server.ok() ? "" : std::string(server.status().message());
}

std::vector<double> Shares(const Network& network, const std::vector<std::pair<int, int>>& ends) {
  std::vector<const Network::Route*> routes;
  for (const auto& [from, to] : ends) routes.push_back(&network.RouteOf(from, to));
  std::vector<double> rates;
  network.Share(routes, rates);
  for (double& rate : rates) rate /= kGib;
  return rates;
}

TEST(Topology, IsRead) {
  const auto server = ParseTopology(
      "switch a uplink 12GiB   # to the host\n"
      "switch b uplink 6GiB under a\n"
      "gpu 1 switch b link 10GiB\n"
      "gpu 0 switch a\n"
      "nvlink 0 1 40GiB\n"
      "p2p 9GiB\nmessage 16GiB\ngpu_memory 900GiB\nhost_memory 256GiB\nupdate_speed 2\nduplex "
      "half\n",
      "t", 5);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->gpu_count(), 2);
  EXPECT_EQ(server->HostBytesPerSecond(), 12 * kGib);
  EXPECT_EQ(server->gpus[1].under, 1);
  EXPECT_EQ(server->memory_bytes, 5);
  EXPECT_EQ(server->update_speed, 2);
  EXPECT_EQ(server->UpdateSeconds(900 * kGib), 7);  // Adam: 7 bytes for one of weights
  EXPECT_TRUE(server->half_duplex);
}

TEST(Topology, NamesLineTextAndRemedy) {
  EXPECT_THAT(Message(""), HasSubstr("t: gpu 0 is missing"));
  EXPECT_THAT(Message("switch a uplink 1GiB\ngpu 1 switch a\n"), HasSubstr("gpu 0 is missing"));
  EXPECT_THAT(Message("gpu 0 switch a\n"), HasSubstr("t:1: 'a' is not a switch described above"));
  EXPECT_THAT(Message("switch a\n"), HasSubstr("write 'switch NAME uplink RATE"));
  EXPECT_THAT(Message("switch a uplink fast\n"), HasSubstr("'fast' is not a bandwidth"));
  EXPECT_THAT(Message("switch a uplink 1GiB\nswitch a uplink 1GiB\n"), HasSubstr("twice"));
  EXPECT_THAT(Message("switch a uplink 1GiB\ngpu 9 switch a\n"), HasSubstr("from 0 to 7"));
  EXPECT_THAT(Message("switch a uplink 1GiB\ngpu 0 switch a\ngpu 0 switch a\n"),
              HasSubstr("t:3: '0' is described twice"));
  EXPECT_THAT(Message("switch a uplink 1GiB\ngpu 0 switch a\nnvlink 0 0 1GiB\n"),
              HasSubstr("is the same GPU"));
  EXPECT_THAT(Message("switch a uplink 1GiB\ngpu 0 switch a\nnvlink 0 3 1GiB\n"),
              HasSubstr("gpu 3, which is not described"));
  EXPECT_THAT(Message("update_speed 0\n"), HasSubstr("'0' is not a speed"));
  EXPECT_THAT(Message("duplex both\n"), HasSubstr("is not known: write"));
  EXPECT_THAT(Message("p2p 1GiB\np2p 1GiB\n"), HasSubstr("'p2p' appears twice"));
}

TEST(Network, OneAloneHasTheUplinkAndTwoShareIt) {
  const Network network(PublishedServer(2, 1));
  EXPECT_THAT(Shares(network, {{kHost, 0}}), ElementsAre(11.5));
  EXPECT_THAT(Shares(network, {{kHost, 0}, {kHost, 1}}), ElementsAre(5.75, 5.75));
  EXPECT_THAT(Shares(network, {{kHost, 0}, {1, kHost}}), ElementsAre(11.5, 11.5));  // both ways
  EXPECT_THAT(Shares(network, {{0, 1}, {kHost, 1}}), ElementsAre(8.2, 11.5));
}

TEST(Network, WhatOneCannotUseTheOthersGet) {
  const auto server = ParseTopology(
      "switch a uplink 12GiB\nswitch b uplink 4GiB under a\n"
      "gpu 0 switch a\ngpu 1 switch b\ngpu 2 switch b\ngpu 3 switch a link 3GiB\nnvlink 1 2 "
      "20GiB\n",
      "t", 1);
  ASSERT_TRUE(server.ok());
  const Network network(*server);
  EXPECT_THAT(Shares(network, {{kHost, 0}, {kHost, 1}, {kHost, 2}}), ElementsAre(8, 2, 2));
  EXPECT_THAT(Shares(network, {{kHost, 0}, {kHost, 3}}), ElementsAre(9, 3));
  EXPECT_THAT(Shares(network, {{0, 1}}), ElementsAre(4));   // through the uplink of b
  EXPECT_THAT(Shares(network, {{1, 2}}), ElementsAre(20));  // over NVLink
  EXPECT_THAT(Shares(network, {{3, 0}}), ElementsAre(3));
}

TEST(Network, HalfDuplexSharesBothWays) {
  Server server = PublishedServer(2, 1);
  server.half_duplex = true;
  EXPECT_THAT(Shares(Network(server), {{kHost, 0}, {1, kHost}}), ElementsAre(5.75, 5.75));
}

}  // namespace
}  // namespace thimble::harmony
