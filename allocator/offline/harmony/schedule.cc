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

bool WaitsOnHost(const Step& step) {
  return step.stream == Stream::kOut && step.kind != Kind::kGradientOut;
}

void AddUp(Schedule& schedule) {
  schedule.seconds = schedule.in_bytes = schedule.out_bytes = schedule.peer_bytes = 0;
  double computing = 0;
  for (const Step& step : schedule.steps) {
    schedule.seconds = std::max(schedule.seconds, step.end);
    if (step.stream == Stream::kIn) schedule.in_bytes += step.bytes;
    if (step.stream == Stream::kOut) schedule.out_bytes += step.bytes;
    if (step.kind == Kind::kReceive || step.kind == Kind::kGather || step.kind == Kind::kReduce) {
      schedule.peer_bytes += step.bytes;
    }
    if (IsCompute(step.kind)) computing += step.end - step.begin;
  }
  schedule.compute_fraction =
      schedule.seconds > 0 ? computing / schedule.seconds / schedule.plan.gpus : 0;
}

}  // namespace thimble::harmony
