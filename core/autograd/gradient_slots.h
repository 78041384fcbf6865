#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/input_buffer.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/autograd/graph_plan.h"

namespace rehearsal {

// The inputs of all nodes of a walk while they are incomplete. Contributions to one slot are added
// in their canonical order (Note [Canonical sums]) by LibTorch's own InputBuffer, hence in place
// where the engine adds in place: one that comes early is kept apart until all before it are there,
// so that memory stays at one tensor per slot while they come in order.
class GradientSlots {
 public:
  // The plan outlives the slots.
  explicit GradientSlots(const GraphPlan& plan);

  // Takes one contribution, undefined or not, made on `producer` if it lives on an accelerator.
  void add(const PlannedEdge& edge, at::Tensor gradient,
           const std::optional<c10::Stream>& producer);

  // The complete inputs of a node, which may now be used on `consumer`. Once for each node.
  [[nodiscard]] torch::autograd::variable_list take(uint32_t node,
                                                    const std::optional<c10::Stream>& consumer);

  // Contributions that wait for earlier ones.
  [[nodiscard]] size_t early_count() const { return early_.size(); }

 private:
  struct Early {
    at::Tensor gradient;
    std::optional<c10::Stream> producer;
  };

  void fold(const PlannedEdge& edge, at::Tensor gradient,
            const std::optional<c10::Stream>& producer);
  void fold_on_device(const PlannedEdge& edge, at::Tensor gradient,
                      const std::optional<c10::Stream>& producer);

  const GraphPlan& plan_;
  std::vector<at::Tensor> sums_;
  std::vector<uint32_t> folded_;  // for each slot: contributions added so far
  std::map<std::pair<uint32_t, uint32_t>, Early> early_;  // by slot and rank
  // Nodes with a stream use a whole InputBuffer, which keeps the events between streams.
  std::map<uint32_t, torch::autograd::InputBuffer> device_buffers_;
  std::optional<torch::autograd::InputBuffer> adder_;
};

}  // namespace rehearsal
