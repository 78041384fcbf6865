#include "core/autograd/graph_walk.h"

#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/autograd/node_evaluation.h"
#include "core/base/check.h"

namespace rehearsal {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

class Inside {
 public:
  Inside(WalkHost& host, Node& node) : host_(host), node_(node) { host_.enter(node_); }
  ~Inside() { host_.leave(node_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  WalkHost& host_;
  Node& node_;
};

}  // namespace

GraphWalk::GraphWalk(WalkScope scope, WalkHost& host)
    : host_(host),
      plan_(scope.roots, std::move(scope.sends), scope.makers),
      retain_graph_(scope.retain_graph),
      slots_(plan_),
      delivered_(plan_.sends().size()),
      sends_given_(plan_.sends().size()) {
  missing_.reserve(plan_.nodes().size());
  for (const PlannedNode& planned : plan_.nodes()) missing_.push_back(planned.dependencies);
  take_roots(scope.roots);
}

void GraphWalk::take_roots(const std::vector<WalkRoot>& roots) {
  if (roots.empty()) return;
  torch::autograd::edge_list edges;
  variable_list gradients;
  for (const WalkRoot& root : roots) {
    edges.push_back(root.edge);
    gradients.push_back(root.gradient);
  }
  const torch::autograd::AutoGradMode no_grad(false);
  torch::autograd::validate_outputs(edges, gradients, [](const std::string& text) {
    return "The gradients of the roots are an " + text;
  });
  for (size_t i = 0; i < gradients.size(); ++i)
    contribute(plan_.root_edges()[i], std::move(gradients[i]), std::nullopt);
}

bool GraphWalk::waits_for(const SendRpcBackward& send) const {
  const std::optional<uint32_t> index = plan_.find(send);
  return index && !sends_given_[*index];
}

void GraphWalk::deliver(const SendRpcBackward& send, variable_list gradients) {
  REHEARSAL_CHECK(waits_for(send), send.route().message);
  const uint32_t index = *plan_.find(send);
  sends_given_[index] = true;
  delivered_[index] = std::move(gradients);
  REHEARSAL_CHECK(missing_[index] == 1, send.route().message, missing_[index]);
  missing_[index] = 0;
  make_ready(index);
}

void GraphWalk::make_ready(uint32_t index) {
  ready_.push_back(index);
  std::push_heap(ready_.begin(), ready_.end(),
                 [this](uint32_t a, uint32_t b) { return plan_.before(b, a); });
}

void GraphWalk::contribute(const PlannedEdge& edge, at::Tensor gradient,
                           const std::optional<c10::Stream>& producer) {
  if (edge.node == PlannedEdge::kNowhere) return;
  slots_.add(edge, std::move(gradient), producer);
  REHEARSAL_CHECK(missing_[edge.node] > 0, edge.node);
  if (--missing_[edge.node] == 0) make_ready(edge.node);
}

void GraphWalk::run() {
  while (step()) {
  }
}

bool GraphWalk::step() {
  REHEARSAL_CHECK(!failed_);
  REHEARSAL_CHECK(evaluating_ == nullptr);
  if (ready_.empty()) return false;
  std::pop_heap(ready_.begin(), ready_.end(),
                [this](uint32_t a, uint32_t b) { return plan_.before(b, a); });
  const uint32_t index = ready_.back();
  ready_.pop_back();
  evaluating_ = plan_.nodes()[index].node;
  failed_ = true;
  evaluate(index);
  failed_ = false;
  evaluating_ = nullptr;
  ++evaluated_;
  if (finished()) streams_.join();
  return true;
}

void GraphWalk::evaluate(uint32_t index) {
  const PlannedNode& planned = plan_.nodes()[index];
  const Inside inside(host_, *planned.node);
  const torch::autograd::AutoGradMode no_grad(false);
  const std::optional<c10::Stream> stream =
      planned.on_device ? planned.node->stream() : std::nullopt;
  const c10::OptionalStreamGuard on_stream(stream);
  variable_list inputs = take_inputs(index, stream);
  switch (planned.role) {
    case NodeRole::ordinary:
    case NodeRole::send:
      pass_on(planned, std::move(inputs), stream);
      break;
    case NodeRole::leaf:
      collect(index, std::move(inputs));
      break;
    case NodeRole::receive:
      hand_out(*planned.node, std::move(inputs));
      break;
  }
  if (stream && planned.edge_count == 0) streams_.note(*stream);
}

GraphWalk::variable_list GraphWalk::take_inputs(uint32_t index,
                                                const std::optional<c10::Stream>& stream) {
  if (plan_.nodes()[index].role != NodeRole::send) return slots_.take(index, stream);
  return *std::exchange(delivered_[index], std::nullopt);
}

void GraphWalk::pass_on(const PlannedNode& planned, variable_list inputs,
                        const std::optional<c10::Stream>& stream) {
  variable_list outputs = evaluate_node(*planned.node, std::move(inputs), retain_graph_);
  REHEARSAL_CHECK(planned.edge_count == planned.node->num_outputs(), planned.node->name());
  for (uint32_t i = 0; i < planned.edge_count; ++i)
    contribute(plan_.edges()[planned.first_edge + i], std::move(outputs[i]), stream);
}

void GraphWalk::collect(uint32_t index, variable_list inputs) {
  auto& leaf = static_cast<AccumulateGrad&>(*plan_.nodes()[index].node);
  inputs = run_hooks_before(leaf, std::move(inputs));
  if (inputs[0].defined() && leaf.variable.requires_grad()) {
    collected_.emplace_back(index, LeafGradient{leaf.variable, inputs[0]});
    run_post_accumulate_hook(leaf);
  }
  run_hooks_after_sink(leaf, inputs);
}

void GraphWalk::hand_out(Node& node, variable_list inputs) {
  inputs = run_hooks_before(node, std::move(inputs));
  const variable_list seen = node.post_hooks().empty() ? variable_list{} : inputs;
  host_.on_received_gradients(static_cast<RecvRpcBackward&>(node), std::move(inputs));
  run_hooks_after_sink(node, seen);
}

std::vector<std::shared_ptr<SendRpcBackward>> GraphWalk::waiting_sends() const {
  std::vector<std::shared_ptr<SendRpcBackward>> waiting;
  for (size_t i = 0; i < sends_given_.size(); ++i)
    if (!sends_given_[i]) waiting.push_back(plan_.sends()[i]);
  return waiting;
}

std::vector<LeafGradient> GraphWalk::take_gradients() {
  std::sort(collected_.begin(), collected_.end(),
            [](const auto& first, const auto& second) { return first.first < second.first; });
  std::vector<LeafGradient> gradients;
  gradients.reserve(collected_.size());
  for (auto& [index, gradient] : std::exchange(collected_, {}))
    gradients.push_back(std::move(gradient));
  return gradients;
}

}  // namespace rehearsal
