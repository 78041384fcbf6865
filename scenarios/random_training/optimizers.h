#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "scenarios/random_training/layers.h"
#include "scenarios/random_training/plan.h"

namespace rehearsal::random_training {

constexpr double kNormMax = 0.3, kValueMax = 0.05;  // of bounded gradients
constexpr double kLowering = 0.5;                   // of the rate
constexpr double kHeadRate = 0.1;

// Calls `use<Made>(options, options_of_first)` for the optimizer of that name: its options, and
// those of the first layer's parameters where they have their own.
template <class F>
auto with_options(OptimizerName name, F use) {
  using namespace torch::optim;
  switch (name) {
    case OptimizerName::sgd:
      return use.template operator()<SGD>(SGDOptions(0.05), SGDOptions(0.02));
    case OptimizerName::momentum:
      return use.template operator()<SGD>(SGDOptions(0.05).momentum(0.9),
                                          SGDOptions(0.02).momentum(0.5));
    case OptimizerName::adam:
      return use.template operator()<Adam>(AdamOptions(0.02), AdamOptions(0.01).weight_decay(0.1));
    case OptimizerName::adamw:
      return use.template operator()<AdamW>(AdamWOptions(0.02), AdamWOptions(0.01));
    case OptimizerName::adagrad:
      return use.template operator()<Adagrad>(AdagradOptions(0.05), AdagradOptions(0.02));
    case OptimizerName::rmsprop:
      return use.template operator()<RMSprop>(RMSpropOptions(0.01), RMSpropOptions(0.02));
    case OptimizerName::own:
      break;
  }
  return use.template operator()<SignDescent>(SignOptions(0.05), SignOptions(0.02));
}

}  // namespace rehearsal::random_training
