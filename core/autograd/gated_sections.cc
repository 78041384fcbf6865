#include "core/autograd/gated_sections.h"

#include <algorithm>
#include <utility>

#include "core/autograd/gate_backward.h"
#include "core/autograd/node_evaluation.h"
#include "core/base/check.h"
#include "core/base/error.h"

namespace rehearsal {
namespace {

using torch::autograd::variable_list;

int64_t version_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor._version()) : 0;
}

}  // namespace

GatedSections::GatedSections(const GraphPlan& plan) : plan_(plan) {
  bool holds = false;
  for (uint32_t index = 0; index < plan_.nodes().size(); ++index)
    if (plan_.nodes()[index].role == NodeRole::gate) {
      gates_.try_emplace(index);
      holds |= gate(index).holds_leaves();
    }
  if (holds) find_flowing();
}

// Against the edges, from all that is no leaf.
void GatedSections::find_flowing() {
  const std::vector<PlannedNode>& nodes = plan_.nodes();
  std::vector<std::vector<uint32_t>> producers(nodes.size());
  std::vector<uint32_t> found;
  flows_.resize(nodes.size());
  for (uint32_t index = 0; index < nodes.size(); ++index) {
    for (const PlannedEdge& edge : edges_of(index))
      if (edge.node != PlannedEdge::kNowhere) producers[edge.node].push_back(index);
    const NodeRole role = nodes[index].role;
    if (role == NodeRole::receive || role == NodeRole::gate || role == NodeRole::input) {
      flows_[index] = true;
      found.push_back(index);
    }
  }
  while (!found.empty()) {
    const uint32_t index = found.back();
    found.pop_back();
    for (const uint32_t producer : producers[index])
      if (!flows_[producer]) {
        flows_[producer] = true;
        found.push_back(producer);
      }
  }
}

std::span<const PlannedEdge> GatedSections::edges_of(uint32_t node) const {
  const PlannedNode& planned = plan_.nodes()[node];
  return std::span(plan_.edges()).subspan(planned.first_edge, planned.edge_count);
}

bool GatedSections::is_closed(uint32_t node) const {
  return plan_.nodes()[node].role == NodeRole::gate && !gates_.at(node).open;
}

PassGate& GatedSections::gate(uint32_t node) const {
  REHEARSAL_CHECK(plan_.nodes()[node].role == NodeRole::gate, node);
  return static_cast<GateBackward*>(plan_.nodes()[node].node)->gate();
}

void GatedSections::begin_flow(uint32_t gate, bool whole) {
  Gate& opened = gates_.at(gate);
  REHEARSAL_CHECK(!opened.open, gate);
  opened.open = true;
  if (!whole && this->gate(gate).holds_leaves()) running_ = gate;
}

bool GatedSections::hold_back(uint32_t node) {
  if (!running_ || flows_[node]) return false;
  gates_.at(*running_).held.push_back(node);
  return true;
}

std::vector<bool> GatedSections::flowing_edges(uint32_t node) const {
  if (!running_ || plan_.nodes()[node].role != NodeRole::ordinary) return {};
  std::vector<bool> flowing;
  bool all = true;
  for (const PlannedEdge& edge : edges_of(node)) {
    flowing.push_back(edge.node == PlannedEdge::kNowhere || flows_[edge.node]);
    all &= flowing.back();
  }
  if (all || !can_evaluate_in_parts(*plan_.nodes()[node].node)) return {};
  return flowing;
}

void GatedSections::keep(uint32_t node, variable_list inputs, std::vector<bool> flowing) {
  REHEARSAL_CHECK(running_.has_value());
  Kept kept{std::move(inputs), std::move(flowing), {}};
  for (const at::Tensor& input : kept.inputs) kept.versions.push_back(version_of(input));
  const bool fresh = kept_.emplace(node, std::move(kept)).second;
  REHEARSAL_CHECK(fresh, node);
  gates_.at(*running_).held.push_back(node);
}

std::optional<GatedSections::Kept> GatedSections::take_kept(uint32_t node) {
  const auto found = kept_.find(node);
  if (found == kept_.end()) return std::nullopt;
  Kept kept = std::move(kept_.extract(found).mapped());
  for (size_t i = 0; i < kept.inputs.size(); ++i)
    if (version_of(kept.inputs[i]) != kept.versions[i])
      throw RpcError({.kind = ErrorKind::autograd,
                      .text = "a gradient of " + plan_.nodes()[node].node->name() +
                              " was changed in place before the gradients of its parameters were "
                              "computed: a hook returns a changed copy instead"});
  return kept;
}

std::vector<uint32_t> GatedSections::end_flows(const std::vector<bool>& settled) {
  std::vector<uint32_t> ended;
  for (auto& [node, gate] : gates_) {
    if (!gate.open || gate.ended) continue;
    const auto inputs = edges_of(node).subspan(1);
    gate.ended = std::ranges::all_of(
        inputs, [&settled](const PlannedEdge& input) { return settled[input.node]; });
    if (gate.ended) ended.push_back(node);
  }
  return ended;
}

std::vector<uint32_t> GatedSections::take_held(uint32_t gate) {
  return std::exchange(gates_.at(gate).held, {});
}

}  // namespace rehearsal
