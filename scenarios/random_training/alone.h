#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "scenarios/random_training/plan.h"

namespace rehearsal::random_training {

// A plan's training in one process.
struct Alone {
  struct Pass {
    double loss = 0;
    std::vector<at::Tensor> of_head;  // the gradients of the head, which this pass does not step
  };
  struct Step {
    std::vector<Pass> passes;
    double norm = 0;                // of the gradients; zero if nothing bounds it
    std::vector<at::Tensor> chain;  // the layers' parameters afterwards
    std::vector<at::Tensor> head;
  };
  std::vector<Step> steps;
};

[[nodiscard]] Alone train_alone(const Plan& plan);

}  // namespace rehearsal::random_training
