#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
}  // namespace torch::optim

namespace rehearsal {

// The options of one of LibTorch's optimizers, as they are sent.
struct OptimizerSettings {
  std::string kind;             // "SGD", "Adam", …
  std::vector<double> numbers;  // its options, in a fixed order
  friend void describe(OptimizerSettings& settings, auto&& fields) {
    fields(settings.kind, settings.numbers);
  }
};

// Throws std::invalid_argument for options of an optimizer that cannot be distributed.
[[nodiscard]] OptimizerSettings settings_of(const torch::optim::OptimizerOptions& options);

// Throws std::invalid_argument for settings that settings_of did not make.
[[nodiscard]] std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const OptimizerSettings& settings, std::vector<at::Tensor> parameters);

}  // namespace rehearsal
