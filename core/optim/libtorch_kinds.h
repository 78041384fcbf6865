#pragma once

#include <string>

#include "core/api/optimizer_kind.h"

namespace rehearsal {

// One of LibTorch's own optimizers.
struct LibtorchKind {
  std::string name;  // "SGD", "Adam", …
  const OptimizerKind* kind = nullptr;
};

// The optimizer with such options. Throws std::invalid_argument for options of one that cannot be
// distributed.
[[nodiscard]] LibtorchKind libtorch_kind_of(const torch::optim::OptimizerOptions& options);

// Throws std::invalid_argument for a name that libtorch_kind_of does not give.
[[nodiscard]] const OptimizerKind& libtorch_kind_named(const std::string& name);

}  // namespace rehearsal
