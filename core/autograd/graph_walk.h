#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/api/leaf_gradients.h"
#include "core/autograd/device_streams.h"
#include "core/autograd/gated_sections.h"
#include "core/autograd/gradient_slots.h"
#include "core/autograd/graph_plan.h"
#include "core/autograd/node_makers.h"
#include "core/autograd/recv_rpc_backward.h"
#include "core/autograd/send_rpc_backward.h"

namespace rehearsal {

// The pass that a walk belongs to, as the walk needs it. Called on the walk's own stack.
class WalkHost {
 public:
  virtual ~WalkHost() = default;

  // The gradients of a received message are complete, one for each input of `function`, some of
  // them perhaps undefined: they belong to the send function of that message at
  // `function.route().peer`. `unreached`: the positions of those that no node contributes to.
  virtual void on_received_gradients(RecvRpcBackward& function,
                                     torch::autograd::variable_list gradients,
                                     std::vector<uint32_t> unreached) = 0;

  // Brackets the evaluation of every node. `enter` returns once no other pass is inside the node;
  // it may park. Only nodes for which may_run_user_code() holds need it: such code may park inside
  // the node, where another pass would meet half-done state or the mutex of a custom function.
  virtual void enter(torch::autograd::Node& node) = 0;
  virtual void leave(torch::autograd::Node& node) noexcept = 0;

  // The walk rests in front of a gate, or has work behind it that was held back: asks it for this
  // part, and has it run by `run_behind`.
  virtual void on_gate(uint32_t number, PassGate& gate, GatePart part) = 0;
};

// The extent and the manner of a walk.
struct WalkScope {
  std::vector<WalkRoot> roots;  // with defined gradients, or undefined ones that count as zero
  std::vector<std::shared_ptr<SendRpcBackward>>
      sends;  // those that may get gradients, in any order
  MakerTable makers;
  bool retain_graph = false;  // else the nodes release what they saved
  bool create_graph = false;  // what the nodes do is recorded, so that gradients have a history
  bool hands_out_nothing = false;  // also for receive functions that are left out: all unreached
};

// Send functions of which gradients will come, and for which of their tensors, by position.
struct ExpectedGradients {
  std::shared_ptr<SendRpcBackward> send;
  std::vector<uint32_t> tensors;
};

// Inputs of a receive function, by position.
struct LiveInputs {
  RecvRpcBackward* function = nullptr;
  std::vector<uint32_t> tensors;
};

// A backward walk of one worker's part of the graph, for one pass, without LibTorch's engine: with
// each node evaluated once all contributions to it are there, by the rules of node_evaluation.h and
// Note [Canonical sums]. It runs what is ready, then waits for the gradients of send functions; it
// may rest between any two nodes, for any time. The bits of all gradients depend on the graph and
// on the gradients given only, never on when these came.
//
// Leaves: the tensor's hooks run on the complete gradient, then the accumulator's pre hooks; then
// the gradient is collected (`.grad` is neither read nor written), then the tensor's
// post-accumulate hook runs if the gradient is defined, then the accumulator's post hooks. A hook
// that reads `.grad` does not see this gradient: it is in the context once the pass has ended. An
// undefined gradient is not collected. Leaves that stopped requiring gradients are left out, but
// their hooks run. A leaf that came from another worker and is recorded in no context ends the walk
// with an error that says how it came, if it gets a gradient.
//
// Whether a send function will get gradients may be open for a while: it is *undecided* until they
// come, or `find_live` is told that they will, or `drop_undecided` that they will not. A node that
// an undecided one leads to waits. Nodes that only dropped ones lead to are left out.
//
// A gate (core/api/pass_gate.h) is not evaluated before `run_behind` says so. One that no gradient
// reaches is left out with all inputs of its section, and the peers of these hear so at once.
//
// A walk is used by one stack at a time: calls are not repeated from inside a hook. It keeps the
// graph alive. Nodes may run LibTorch's own backward inside (checkpoints do); they may not park in
// there. `torch::autograd::get_current_node()` is null in a walk. An exception out of `step`, the
// user's or LibTorch's, ends the walk: it can only be destroyed, and keeps its collected gradients.
class GraphWalk {
 public:
  // Explores the graph and takes the gradients of the roots; evaluates nothing. Throws c10::Error
  // if a root's gradient does not fit the root. `host` outlives the walk.
  GraphWalk(WalkScope scope, WalkHost& host);

  GraphWalk(const GraphWalk&) = delete;
  GraphWalk& operator=(const GraphWalk&) = delete;

  // True if this send function belongs to the walk and has not got its gradients.
  [[nodiscard]] bool waits_for(const SendRpcBackward& send) const;

  // Gives a send function that is waited for its gradients, in message order, undefined ones for
  // tensors that got none. Nodes that only the `unreached` ones lead to are left out. A gradient
  // that does not fit the tensors sent makes `step` throw.
  void deliver(const SendRpcBackward& send, torch::autograd::variable_list gradients,
               std::vector<uint32_t> unreached = {});

  // Live nodes will be evaluated: the roots, what they lead to, and what the tensors of send
  // functions lead to that have got gradients, or will get them as `expected` says. Returns those
  // inputs of receive functions that are live, have not been handed out, and that no earlier call
  // returned.
  std::vector<LiveInputs> find_live(const std::vector<ExpectedGradients>& expected);

  // No send function but those that are expected will get gradients.
  void drop_undecided();

  // Evaluates the first ready node; false if none is ready. May park.
  bool step();

  // Steps until no node is ready. May park.
  void run();

  // The same for a part of the work behind a gate that the host was told of.
  void run_behind(uint32_t gate, GatePart part);

  // True once every node that the walk covers has been evaluated or left out.
  [[nodiscard]] bool finished() const { return evaluated_ + left_out_ == plan_.nodes().size(); }

  // True once every live node has been evaluated, as of the last `find_live`, if there was one.
  [[nodiscard]] bool complete() const {
    return finished() || (!live_.empty() && live_count_ == evaluated_);
  }

  // The send functions without gradients, latest message first.
  [[nodiscard]] std::vector<std::shared_ptr<SendRpcBackward>> waiting_sends() const;

  // The gradients of the leaves reached since the last call, each with its place in the order in
  // which the graph leads to them. For the context, once the pass has succeeded.
  [[nodiscard]] std::vector<std::pair<uint32_t, LeafGradient>> take_gradients();

  // The node that `step` was evaluating when it threw, or is; null between steps.
  [[nodiscard]] const torch::autograd::Node* evaluating() const { return evaluating_; }

 private:
  using variable_list = torch::autograd::variable_list;

  void take_roots(const std::vector<WalkRoot>& roots);
  void contribute(const PlannedEdge& edge, at::Tensor gradient,
                  const std::optional<c10::Stream>& producer);
  void make_ready(uint32_t index);
  class LiveSearch;
  void take_nothing(const PlannedEdge& edge, std::vector<uint32_t>& left);
  void leave_out(std::vector<uint32_t> left, bool tells_peers);
  void hand_out_nothing(const PlannedNode& planned);
  void settle(uint32_t index);
  [[nodiscard]] bool evaluate(uint32_t index);
  void pass_on(const PlannedNode& planned, variable_list inputs,
               const std::optional<c10::Stream>& stream, std::span<const uint32_t> unreached);
  void leave_out_unreached(uint32_t index, std::span<const uint32_t> edges);
  [[nodiscard]] bool rests_before(uint32_t index);
  void end_sections();
  void pass_on_first(uint32_t index, const std::vector<bool>& flowing,
                     const std::optional<c10::Stream>& stream);
  void pass_on_rest(uint32_t index, GatedSections::Kept kept,
                    const std::optional<c10::Stream>& stream);
  void contribute_some(uint32_t index, variable_list outputs, const std::vector<bool>& edges,
                       const std::optional<c10::Stream>& stream);
  void collect(uint32_t index, variable_list inputs);
  void hand_out(const PlannedNode& planned, variable_list inputs);
  variable_list take_inputs(uint32_t index, const std::optional<c10::Stream>& stream);

  WalkHost& host_;
  const GraphPlan plan_;
  const bool retain_graph_;
  const bool create_graph_;
  const bool hands_out_nothing_;
  GradientSlots slots_;
  GatedSections sections_;
  std::vector<uint32_t> missing_;  // for each node: contributions still to come
  std::vector<bool> reached_;      // for each node: one has come
  std::vector<bool> reached_slots_;
  std::vector<bool> evaluated_nodes_;
  std::vector<bool> settled_nodes_;  // evaluated or left out; if there are gates
  std::vector<bool> live_;           // for each node; empty until somebody asks
  std::vector<bool> live_slots_;
  std::vector<uint32_t> ready_;                          // a heap, first of the order on top
  std::vector<std::optional<variable_list>> delivered_;  // for each send function
  std::vector<bool> sends_given_;
  std::vector<std::vector<uint32_t>> unreached_;              // for each send function
  std::vector<std::pair<uint32_t, LeafGradient>> collected_;  // with the leaf's index
  DeviceStreams streams_;
  size_t live_count_ = 0;
  size_t evaluated_ = 0;
  size_t left_out_ = 0;
  const torch::autograd::Node* evaluating_ = nullptr;
  bool failed_ = false;
};

}  // namespace rehearsal
