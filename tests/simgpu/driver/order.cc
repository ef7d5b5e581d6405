#include "tests/simgpu/driver/order.h"

#include <algorithm>

namespace simgpu {

void Order::JoinInto(Clock* clock, const Clock& other) {
  if (clock->size() < other.size()) clock->resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
}

int Order::AddStream(int device) {
  const std::size_t number = streams_.size();
  streams_.push_back({device, Clock(number + 1)});
  return static_cast<int>(number);
}

Sequence Order::Submit(int stream) {
  const auto number = static_cast<std::size_t>(stream);
  Clock& clock = streams_[number].clock;
  JoinInto(&clock, host_);
  return ++clock[number];
}

Moment Order::At(int stream) const {
  return std::make_shared<const Clock>(streams_[static_cast<std::size_t>(stream)].clock);
}

void Order::Join(int stream, const Moment& moment) {
  if (moment != nullptr) JoinInto(&streams_[static_cast<std::size_t>(stream)].clock, *moment);
}

void Order::Learn(const Moment& moment) {
  if (moment != nullptr) JoinInto(&host_, *moment);
}

Moment Order::AtAll(int device) const {
  auto clock = std::make_shared<Clock>();
  for (const Stream& stream : streams_) {
    if (stream.device == device) JoinInto(clock.get(), stream.clock);
  }
  return clock;
}

}  // namespace simgpu
