// What the table remembers about streams and contexts, and for how long.
#include "xla_plugin/driver_front/handle_table.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble::xla {
namespace {

const void* Handle(std::uintptr_t number) { return reinterpret_cast<const void*>(number); }
CUcontext Context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
Device* DeviceAt(std::uintptr_t number) { return reinterpret_cast<Device*>(number); }

CUcontext ContextOf(const HandleTable& table, const void* handle) {
  return table.Find(handle).value_or(Owner{}).context;
}

TEST(HandleTable, AHandleIsKnownUntilItIsRemoved) {
  HandleTable table;
  EXPECT_FALSE(table.Find(Handle(16)).has_value());
  table.Add(Handle(16), {DeviceAt(1), Context(2)});
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(table.Find(Handle(16)).has_value());
    EXPECT_EQ(table.Find(Handle(16))->device, DeviceAt(1));
    EXPECT_EQ(table.Find(Handle(16))->context, Context(2));
  }
  const auto removed = table.Remove(Handle(16));
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->context, Context(2));
  EXPECT_FALSE(table.Find(Handle(16)).has_value());
  EXPECT_FALSE(table.Remove(Handle(16)).has_value());
}

// The driver gives a new stream the number of one that is gone.
TEST(HandleTable, ANumberThatIsUsedAgainHasItsNewOwnerOnEveryThread) {
  HandleTable table;
  std::atomic<int> round{0};
  std::atomic<int> done{0};
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int seen = 1; seen <= kRounds; ++seen) {
        while (round < seen) std::this_thread::yield();
        for (int again = 0; again < 3; ++again) {
          EXPECT_EQ(ContextOf(table, Handle(16)), Context(static_cast<std::uintptr_t>(seen)));
        }
        ++done;
      }
    });
  }
  for (int next = 1; next <= kRounds; ++next) {
    table.Remove(Handle(16));
    table.Add(Handle(16), {DeviceAt(1), Context(static_cast<std::uintptr_t>(next))});
    round = next;
    while (done < next * kThreads) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HandleTable, AllHandlesOfAContextGoTogether) {
  HandleTable table;
  for (std::uintptr_t i = 1; i <= 20; ++i) table.Add(Handle(16 * i), {DeviceAt(1), Context(i % 2)});
  for (std::uintptr_t i = 1; i <= 20; ++i) EXPECT_TRUE(table.Find(Handle(16 * i)).has_value());
  const auto removed =
      table.RemoveIf([](const Owner& owner) { return owner.context == Context(1); });
  EXPECT_EQ(removed.size(), 10u);
  for (std::uintptr_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(table.Find(Handle(16 * i)).has_value(), i % 2 == 0) << i;
  }
}

TEST(HandleTable, TablesAreApart) {
  HandleTable streams;
  HandleTable contexts;
  streams.Add(Handle(16), {DeviceAt(1), Context(1)});
  EXPECT_EQ(ContextOf(streams, Handle(16)), Context(1));
  EXPECT_FALSE(contexts.Find(Handle(16)).has_value());
  contexts.Add(Handle(16), {DeviceAt(1), Context(2)});
  EXPECT_EQ(ContextOf(contexts, Handle(16)), Context(2));
  EXPECT_EQ(ContextOf(streams, Handle(16)), Context(1));
}

TEST(HandleTable, WhatOneTableKnewTheNextOneDoesNot) {
  alignas(HandleTable) unsigned char place[sizeof(HandleTable)];
  auto* table = new (place) HandleTable;
  table->Add(Handle(16), {DeviceAt(1), Context(1)});
  EXPECT_TRUE(table->Find(Handle(16)).has_value());
  table->~HandleTable();
  table = new (place) HandleTable;
  EXPECT_FALSE(table->Find(Handle(16)).has_value());
  table->~HandleTable();
}

}  // namespace
}  // namespace thimble::xla
