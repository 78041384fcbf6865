// The things that the trainer of `traps` works with.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/api/worker.h"
#include "scenarios/traps/served.h"

namespace rehearsal::traps {

// The first numbers of the weights, here and in the model in one process.
inline constexpr double kNear = 1;
inline constexpr double kFar = 2;
inline constexpr double kNet = 3;
inline constexpr double kX = 4;

struct Ground {
  Worker& worker;
  RRef<Scaler> near;
  RRef<Scaler> far;
  RRef<Hub> hub;  // at "near", of `far`
  RemoteModule<Net> net;
};

[[nodiscard]] Ground make_ground(Worker& worker);

// A gradient that is not what it must be, or a loss of gradients that nobody was told.
class Trapped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearsal::traps
