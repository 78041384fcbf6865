#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <string>
#include <utility>

#include "core/api/pass_gate.h"

namespace rehearsal {

// Where a section begins, seen from the loss. Its first input and output are the gradient of the
// section's output. The other outputs lead to the section's inputs and carry nothing: so each input
// learns with the gate that its gradient will come or not, whatever the section does with it.
class GateBackward final : public torch::autograd::Node {
 public:
  GateBackward(std::shared_ptr<PassGate> gate, torch::autograd::edge_list&& edges)
      : Node(std::move(edges)), gate_(std::move(gate)) {}

  [[nodiscard]] PassGate& gate() const { return *gate_; }
  [[nodiscard]] std::string name() const override { return "GateBackward"; }
  bool is_traceable() override { return true; }  // It runs no code of a user.

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  const std::shared_ptr<PassGate> gate_;
};

// Where a section ends: the gradient of one of its inputs, complete.
class SectionInputBackward final : public torch::autograd::Node {
 public:
  explicit SectionInputBackward(torch::autograd::edge_list&& edges) : Node(std::move(edges)) {}

  [[nodiscard]] std::string name() const override { return "SectionInputBackward"; }
  bool is_traceable() override { return true; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
};

}  // namespace rehearsal
