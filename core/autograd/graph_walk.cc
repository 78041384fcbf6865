#include "core/autograd/graph_walk.h"

#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "core/autograd/node_evaluation.h"
#include "core/autograd/unrecorded.h"
#include "core/base/check.h"

namespace rehearsal {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

bool contains(std::span<const uint32_t> positions, uint32_t position) {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

std::vector<uint32_t> sorted(std::vector<uint32_t> positions) {
  std::sort(positions.begin(), positions.end());
  return positions;
}

// The edges of a node that carry gradients are its first ones.
uint32_t carrying_edges(const PlannedNode& planned) {
  return planned.role == NodeRole::gate ? 1 : planned.edge_count;
}

// The others, behind them.
std::vector<uint32_t> idle_edges(const PlannedNode& planned) {
  std::vector<uint32_t> edges(planned.edge_count - carrying_edges(planned));
  std::iota(edges.begin(), edges.end(), carrying_edges(planned));
  return edges;
}

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
      create_graph_(scope.create_graph),
      hands_out_nothing_(scope.hands_out_nothing),
      slots_(plan_),
      sections_(plan_),
      reached_(plan_.nodes().size()),
      reached_slots_(plan_.slot_count()),
      evaluated_nodes_(plan_.nodes().size()),
      settled_nodes_(sections_.empty() ? 0 : plan_.nodes().size()),
      delivered_(plan_.sends().size()),
      sends_given_(plan_.sends().size()),
      unreached_(plan_.sends().size()) {
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
  const torch::autograd::AutoGradMode grad_mode(create_graph_);
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

void GraphWalk::deliver(const SendRpcBackward& send, variable_list gradients,
                        std::vector<uint32_t> unreached) {
  REHEARSAL_CHECK(waits_for(send), send.route().message);
  const uint32_t index = *plan_.find(send);
  sends_given_[index] = true;
  delivered_[index] = std::move(gradients);
  unreached_[index] = std::move(unreached);
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
  reached_[edge.node] = true;
  reached_slots_[edge.slot] = true;
  slots_.add(edge, std::move(gradient), producer);
  REHEARSAL_CHECK(missing_[edge.node] > 0, edge.node);
  if (--missing_[edge.node] == 0) make_ready(edge.node);
}

// ---- what will be evaluated -----------------------------------------------------

// Finds what has become live since the last search.
class GraphWalk::LiveSearch {
 public:
  explicit LiveSearch(GraphWalk& walk) : walk_(walk), plan_(walk.plan_) {
    if (!walk_.live_.empty()) return;
    walk_.live_.resize(plan_.nodes().size());
    walk_.live_slots_.resize(plan_.slot_count());
    for (const PlannedEdge& edge : plan_.root_edges()) reach(edge);
  }

  void reach_from_send(uint32_t index, uint32_t tensor) {
    make_live(index);
    const PlannedNode& send = plan_.nodes()[index];
    if (tensor < send.edge_count) reach(plan_.edges()[send.first_edge + tensor]);
  }

  std::vector<LiveInputs> finish() {
    for (size_t next = 0; next < found_.size(); ++next) {  // The list is the queue, too.
      const PlannedNode& planned = plan_.nodes()[found_[next]];
      for (uint32_t i = 0; i < carrying_edges(planned); ++i)
        reach(plan_.edges()[planned.first_edge + i]);
    }
    std::vector<LiveInputs> inputs;
    for (auto& [index, tensors] : inputs_)
      inputs.push_back(
          {static_cast<RecvRpcBackward*>(plan_.nodes()[index].node), sorted(std::move(tensors))});
    return inputs;
  }

 private:
  bool make_live(uint32_t index) {
    if (walk_.live_[index]) return false;
    walk_.live_[index] = true;
    ++walk_.live_count_;
    return true;
  }

  void reach(const PlannedEdge& edge) {
    if (edge.node == PlannedEdge::kNowhere || walk_.live_slots_[edge.slot]) return;
    walk_.live_slots_[edge.slot] = true;
    const PlannedNode& planned = plan_.nodes()[edge.node];
    if (planned.role == NodeRole::receive && !walk_.evaluated_nodes_[edge.node])
      inputs_[edge.node].push_back(edge.slot - planned.first_slot);
    if (make_live(edge.node)) found_.push_back(edge.node);
  }

  GraphWalk& walk_;
  const GraphPlan& plan_;
  std::vector<uint32_t> found_;
  std::map<uint32_t, std::vector<uint32_t>> inputs_;  // of receive functions
};

std::vector<LiveInputs> GraphWalk::find_live(const std::vector<ExpectedGradients>& expected) {
  LiveSearch search(*this);
  for (uint32_t index = 0; index < sends_given_.size(); ++index) {
    if (!sends_given_[index]) continue;
    for (uint32_t i = 0; i < plan_.nodes()[index].edge_count; ++i)
      if (!contains(unreached_[index], i)) search.reach_from_send(index, i);
  }
  for (const ExpectedGradients& gradients : expected)
    if (const std::optional<uint32_t> index = plan_.find(*gradients.send))
      for (const uint32_t tensor : gradients.tensors) search.reach_from_send(*index, tensor);
  return search.finish();
}

void GraphWalk::drop_undecided() {
  // Gradients that waited for these are added now, by the rules of this pass.
  const torch::autograd::AutoGradMode grad_mode(create_graph_);
  for (uint32_t index = 0; index < sends_given_.size(); ++index)
    if (!sends_given_[index] && (live_.empty() || !live_[index])) {
      sends_given_[index] = true;
      leave_out({index}, hands_out_nothing_);
    }
}

// One contribution will not come.
void GraphWalk::take_nothing(const PlannedEdge& edge, std::vector<uint32_t>& left) {
  if (edge.node == PlannedEdge::kNowhere) return;
  slots_.add(edge, {}, std::nullopt);
  REHEARSAL_CHECK(missing_[edge.node] > 0, edge.node);
  if (--missing_[edge.node] > 0) return;
  if (reached_[edge.node])
    make_ready(edge.node);
  else
    left.push_back(edge.node);
}

void GraphWalk::hand_out_nothing(const PlannedNode& planned) {
  std::vector<uint32_t> all(planned.slot_count);
  std::iota(all.begin(), all.end(), 0U);
  host_.on_received_gradients(static_cast<RecvRpcBackward&>(*planned.node),
                              variable_list(planned.slot_count), std::move(all));
}

// A node that nothing contributes to is not evaluated, and contributes nothing.
void GraphWalk::leave_out(std::vector<uint32_t> left, bool tells_peers) {
  while (!left.empty()) {
    const uint32_t index = left.back();
    const PlannedNode& planned = plan_.nodes()[index];
    left.pop_back();
    ++left_out_;
    settle(index);
    if (tells_peers && planned.role == NodeRole::receive) hand_out_nothing(planned);
    if (planned.role == NodeRole::gate)
      for (const GatePart part : {GatePart::flow, GatePart::leaves})
        sections_.gate(index).end(part);
    for (uint32_t i = 0; i < planned.edge_count; ++i)
      take_nothing(plan_.edges()[planned.first_edge + i], left);
  }
}

// ---- evaluation -----------------------------------------------------------------

void GraphWalk::run() {
  while (step()) {
  }
  if (!sections_.empty()) end_sections();
}

bool GraphWalk::step() {
  REHEARSAL_CHECK(!failed_);
  REHEARSAL_CHECK(evaluating_ == nullptr);
  if (ready_.empty()) return false;
  std::pop_heap(ready_.begin(), ready_.end(),
                [this](uint32_t a, uint32_t b) { return plan_.before(b, a); });
  const uint32_t index = ready_.back();
  ready_.pop_back();
  if (!sections_.empty() && rests_before(index)) return true;
  evaluating_ = plan_.nodes()[index].node;
  failed_ = true;
  const bool whole = evaluate(index);
  failed_ = false;
  evaluating_ = nullptr;
  if (!whole) return true;
  evaluated_nodes_[index] = true;
  ++evaluated_;
  settle(index);
  if (finished()) streams_.join();
  return true;
}

void GraphWalk::settle(uint32_t index) {
  if (!sections_.empty()) settled_nodes_[index] = true;
}

// Evaluates a node, or the first of two parts of it: then it returns false.
bool GraphWalk::evaluate(uint32_t index) {
  const PlannedNode& planned = plan_.nodes()[index];
  const Inside inside(host_, *planned.node);
  const torch::autograd::AutoGradMode grad_mode(create_graph_);
  const std::optional<c10::Stream> stream =
      planned.on_device ? planned.node->stream() : std::nullopt;
  const c10::OptionalStreamGuard on_stream(stream);
  if (!sections_.empty() && planned.role == NodeRole::ordinary) {
    if (auto kept = sections_.take_kept(index)) {
      pass_on_rest(index, std::move(*kept), stream);
      return true;
    }
    if (const std::vector<bool> flowing = sections_.flowing_edges(index); !flowing.empty()) {
      pass_on_first(index, flowing, stream);
      return false;
    }
  }
  variable_list inputs = take_inputs(index, stream);
  switch (planned.role) {
    case NodeRole::ordinary:
    case NodeRole::input:
      pass_on(planned, std::move(inputs), stream, {});
      break;
    case NodeRole::send:
      pass_on(planned, std::move(inputs), stream, unreached_[index]);
      leave_out_unreached(index, unreached_[index]);
      break;
    case NodeRole::gate:
      pass_on(planned, std::move(inputs), stream, idle_edges(planned));
      leave_out_unreached(index, idle_edges(planned));
      break;
    case NodeRole::leaf:
      collect(index, std::move(inputs));
      break;
    case NodeRole::receive:
      hand_out(planned, std::move(inputs));
      break;
  }
  if (stream && planned.edge_count == 0) streams_.note(*stream);
  return true;
}

GraphWalk::variable_list GraphWalk::take_inputs(uint32_t index,
                                                const std::optional<c10::Stream>& stream) {
  if (plan_.nodes()[index].role != NodeRole::send) return slots_.take(index, stream);
  return *std::exchange(delivered_[index], std::nullopt);
}

void GraphWalk::pass_on(const PlannedNode& planned, variable_list inputs,
                        const std::optional<c10::Stream>& stream,
                        std::span<const uint32_t> unreached) {
  variable_list outputs = evaluate_node(*planned.node, std::move(inputs), retain_graph_);
  REHEARSAL_CHECK(planned.edge_count == planned.node->num_outputs(), planned.node->name());
  for (uint32_t i = 0; i < planned.edge_count; ++i)
    if (!contains(unreached, i))
      contribute(plan_.edges()[planned.first_edge + i], std::move(outputs[i]), stream);
}

void GraphWalk::leave_out_unreached(uint32_t index, std::span<const uint32_t> edges) {
  std::vector<uint32_t> left;
  for (const uint32_t edge : edges)
    take_nothing(plan_.edges()[plan_.nodes()[index].first_edge + edge], left);
  leave_out(std::move(left), hands_out_nothing_ || !sections_.empty());
}

// ---- behind gates ---------------------------------------------------------------

// A node that is ready is evaluated later, once its gate is open or its section's second part runs.
bool GraphWalk::rests_before(uint32_t index) {
  if (!sections_.is_closed(index)) return sections_.hold_back(index);
  host_.on_gate(index, sections_.gate(index), GatePart::flow);
  return true;
}

void GraphWalk::run_behind(uint32_t gate, GatePart part) {
  if (part == GatePart::flow) {
    sections_.begin_flow(gate, /*whole=*/create_graph_);  // Parts would have a history each.
    make_ready(gate);
  } else {
    for (const uint32_t index : sections_.take_held(gate)) make_ready(index);
  }
  run();
  if (part == GatePart::leaves) sections_.gate(gate).end(part);
}

void GraphWalk::end_sections() {
  sections_.pause_flow();
  for (const uint32_t index : sections_.end_flows(settled_nodes_)) {
    PassGate& gate = sections_.gate(index);
    gate.end(GatePart::flow);
    if (sections_.holds_work(index))
      host_.on_gate(index, gate, GatePart::leaves);
    else
      gate.end(GatePart::leaves);
  }
}

void GraphWalk::pass_on_first(uint32_t index, const std::vector<bool>& flowing,
                              const std::optional<c10::Stream>& stream) {
  Node& node = *plan_.nodes()[index].node;
  variable_list inputs = run_hooks_before(node, take_inputs(index, stream));
  variable_list outputs = evaluate_part(node, inputs, flowing, /*release=*/false);
  sections_.keep(index, std::move(inputs), flowing);
  contribute_some(index, std::move(outputs), flowing, stream);
}

void GraphWalk::pass_on_rest(uint32_t index, GatedSections::Kept kept,
                             const std::optional<c10::Stream>& stream) {
  kept.flowing.flip();
  variable_list outputs = evaluate_part(*plan_.nodes()[index].node, std::move(kept.inputs),
                                        kept.flowing, /*release=*/!retain_graph_);
  contribute_some(index, std::move(outputs), kept.flowing, stream);
}

void GraphWalk::contribute_some(uint32_t index, variable_list outputs,
                                const std::vector<bool>& edges,
                                const std::optional<c10::Stream>& stream) {
  const PlannedNode& planned = plan_.nodes()[index];
  for (uint32_t i = 0; i < planned.edge_count; ++i)
    if (edges[i]) contribute(plan_.edges()[planned.first_edge + i], std::move(outputs[i]), stream);
}

void GraphWalk::collect(uint32_t index, variable_list inputs) {
  auto& leaf = static_cast<AccumulateGrad&>(*plan_.nodes()[index].node);
  if (inputs[0].defined()) refuse_unrecorded(leaf.variable);
  inputs = run_hooks_before(leaf, std::move(inputs));
  if (inputs[0].defined() && leaf.variable.requires_grad()) {
    collected_.emplace_back(index, LeafGradient{leaf.variable, inputs[0]});
    run_post_accumulate_hook(leaf);
  }
  run_hooks_after_sink(leaf, inputs);
}

void GraphWalk::hand_out(const PlannedNode& planned, variable_list inputs) {
  Node& node = *planned.node;
  inputs = run_hooks_before(node, std::move(inputs));
  const variable_list seen = node.post_hooks().empty() ? variable_list{} : inputs;
  std::vector<uint32_t> unreached;
  for (uint32_t i = 0; i < planned.slot_count; ++i)
    if (!reached_slots_[planned.first_slot + i]) unreached.push_back(i);
  host_.on_received_gradients(static_cast<RecvRpcBackward&>(node), std::move(inputs),
                              std::move(unreached));
  run_hooks_after_sink(node, seen);
}

std::vector<std::shared_ptr<SendRpcBackward>> GraphWalk::waiting_sends() const {
  std::vector<std::shared_ptr<SendRpcBackward>> waiting;
  for (size_t i = 0; i < sends_given_.size(); ++i)
    if (!sends_given_[i]) waiting.push_back(plan_.sends()[i]);
  return waiting;
}

std::vector<std::pair<uint32_t, LeafGradient>> GraphWalk::take_gradients() {
  streams_.join();
  std::sort(collected_.begin(), collected_.end(),
            [](const auto& first, const auto& second) { return first.first < second.first; });
  return std::exchange(collected_, {});
}

}  // namespace rehearsal
