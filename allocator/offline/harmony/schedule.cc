#include "allocator/offline/harmony/schedule.h"

#include <algorithm>

namespace thimble::harmony {

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kWeightsIn:
      return "weights in";
    case Kind::kDataIn:
      return "data in";
    case Kind::kStashIn:
      return "stash in";
    case Kind::kBoundaryIn:
      return "boundary in";
    case Kind::kReceive:
      return "receive";
    case Kind::kActivationsIn:
      return "activations in";
    case Kind::kForward:
      return "forward";
    case Kind::kRecompute:
      return "recompute";
    case Kind::kBackward:
      return "backward";
    case Kind::kActivationsOut:
      return "activations out";
    case Kind::kStashOut:
      return "stash out";
    case Kind::kBoundaryOut:
      return "boundary out";
    case Kind::kSend:
      return "send";
    case Kind::kGather:
      return "gather";
    case Kind::kReduce:
      return "reduce";
    case Kind::kGradientOut:
      return "gradient out";
    case Kind::kUpdate:
      return "update";
    case Kind::kMessage:
      return "message";
    case Kind::kDelete:
      return "delete";
  }
  return "";
}

const char* NameOf(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kIn:
      return "in";
    case Stream::kOut:
      return "out";
    case Stream::kPeerIn:
      return "peer in";
    case Stream::kPeerOut:
      return "peer out";
    case Stream::kHost:
      return "host";
  }
  return "";
}

bool IsCompute(Kind kind) {
  return kind == Kind::kForward || kind == Kind::kRecompute || kind == Kind::kBackward;
}

bool WaitsOnHost(const Action& action) {
  return action.stream == Stream::kOut && action.kind != Kind::kGradientOut;
}

void AddUp(Schedule& schedule) {
  schedule.seconds = schedule.in_bytes = schedule.out_bytes = schedule.peer_bytes = 0;
  double computing = 0;
  for (const Action& action : schedule.actions) {
    schedule.seconds = std::max(schedule.seconds, action.end);
    if (action.stream == Stream::kIn) schedule.in_bytes += action.bytes;
    if (action.stream == Stream::kOut) schedule.out_bytes += action.bytes;
    if (action.kind == Kind::kReceive || action.kind == Kind::kGather ||
        action.kind == Kind::kReduce) {
      schedule.peer_bytes += action.bytes;
    }
    if (IsCompute(action.kind)) computing += action.end - action.begin;
  }
  schedule.compute_fraction =
      schedule.seconds > 0 ? computing / schedule.seconds / schedule.plan.gpus : 0;
}

}  // namespace thimble::harmony
