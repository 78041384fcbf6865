#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/remote_module.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

// Modules that live at several workers, and their twins here.
namespace rehearsal::testing {

inline bool equal_bits(const torch::Tensor& first, const torch::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() == second.defined();
  if (first.dtype() != second.dtype() || first.sizes() != second.sizes()) return false;
  const torch::Tensor a = first.detach().contiguous();
  const torch::Tensor b = second.detach().contiguous();
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Values that depend on the seed only.
inline torch::Tensor numbers(at::IntArrayRef sizes, int64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return torch::sin(torch::arange(seed, seed + count, torch::kFloat) * 12.9898F).reshape(sizes);
}

// A scale of its own over a linear layer. The same seed makes the same module anywhere.
class Net : public torch::nn::Module {
 public:
  Net(int64_t width, int64_t seed)
      : scale_(register_parameter("scale", numbers({width}, seed))),
        linear_(register_module("linear", torch::nn::Linear(width, width))) {
    if (width > 64) throw std::length_error("too wide for this test");
    const torch::NoGradGuard no_grad;
    linear_->weight.copy_(numbers({width, width}, seed + 1));
    linear_->bias.copy_(numbers({width}, seed + 2));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    if (input.dim() != 2) throw std::invalid_argument("rows are expected");
    return torch::tanh(linear_->forward(input)) * scale_;
  }

  // The present parameters.
  std::vector<torch::Tensor> values() const {
    std::vector<torch::Tensor> values;
    for (const torch::Tensor& parameter : parameters()) values.push_back(parameter.detach());
    return values;
  }

 private:
  torch::Tensor scale_;
  torch::nn::Linear linear_;
};

inline void register_net(FunctionRegistry& registry) {
  register_module<Net, int64_t, int64_t>(registry, "Net").method("values", &Net::values);
}

inline FunctionRegistry net_functions() {
  FunctionRegistry registry;
  register_net(registry);
  return registry;
}

inline constexpr int64_t kWidth = 4;  // of the nets of a test

inline void serve(Worker&) {}

// The error that `body` throws.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Runs the program with many seeds under mild faults.
inline ::testing::AssertionResult holds_under_faults(const Program& program) {
  return sim::hunt({.seeds = tries(25), .cluster = {.faults = sim::FaultLevel::mild}},
                   [&](Seed seed, const sim::ClusterOptions& options) {
                     sim::Cluster(seed, program, options).run();
                   });
}

// Runs `main` once, as worker "trainer" beside "ps".
inline void run_once(FunctionRegistry registry, const Program::Main& main) {
  Program program(std::move(registry));
  program.worker("trainer", main).worker("ps", serve);
  sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
}

}  // namespace rehearsal::testing
