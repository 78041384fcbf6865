#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/api/leaf_gradients.h"
#include "core/autograd/device_streams.h"
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
  // `function.route().peer`.
  virtual void on_received_gradients(RecvRpcBackward& function,
                                     torch::autograd::variable_list gradients) = 0;

  // Brackets the evaluation of every node. `enter` returns once no other pass is inside the node;
  // it may park. Only nodes for which may_run_user_code() holds need it: such code may park inside
  // the node, where another pass would meet half-done state or the mutex of a custom function.
  virtual void enter(torch::autograd::Node& node) = 0;
  virtual void leave(torch::autograd::Node& node) noexcept = 0;
};

// The extent and the manner of a walk.
struct WalkScope {
  std::vector<WalkRoot> roots;  // with defined gradients, or undefined ones that count as zero
  std::vector<std::shared_ptr<SendRpcBackward>>
      sends;  // those that will get gradients, in any order
  MakerTable makers;
  bool retain_graph = false;  // else the nodes release what they saved
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
// their hooks run.
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
  // tensors that got none. A gradient that does not fit the tensors sent makes `step` throw.
  void deliver(const SendRpcBackward& send, torch::autograd::variable_list gradients);

  // Evaluates the first ready node; false if none is ready. May park.
  bool step();

  // Steps until no node is ready. May park.
  void run();

  // True once every node that the walk covers has been evaluated.
  [[nodiscard]] bool finished() const { return evaluated_ == plan_.nodes().size(); }

  // The send functions without gradients, latest message first.
  [[nodiscard]] std::vector<std::shared_ptr<SendRpcBackward>> waiting_sends() const;

  // The gradients of the leaves reached so far, in the order in which the graph leads to them. For
  // the context, once the pass has succeeded.
  [[nodiscard]] std::vector<LeafGradient> take_gradients();

  // The node that `step` was evaluating when it threw, or is; null between steps.
  [[nodiscard]] const torch::autograd::Node* evaluating() const { return evaluating_; }

 private:
  using variable_list = torch::autograd::variable_list;

  void take_roots(const std::vector<WalkRoot>& roots);
  void contribute(const PlannedEdge& edge, at::Tensor gradient,
                  const std::optional<c10::Stream>& producer);
  void make_ready(uint32_t index);
  void evaluate(uint32_t index);
  void pass_on(const PlannedNode& planned, variable_list inputs,
               const std::optional<c10::Stream>& stream);
  void collect(uint32_t index, variable_list inputs);
  void hand_out(torch::autograd::Node& node, variable_list inputs);
  variable_list take_inputs(uint32_t index, const std::optional<c10::Stream>& stream);

  WalkHost& host_;
  const GraphPlan plan_;
  const bool retain_graph_;
  GradientSlots slots_;
  std::vector<uint32_t> missing_;  // for each node: contributions still to come
  std::vector<uint32_t> ready_;    // a heap, first of the order on top
  std::vector<std::optional<variable_list>> delivered_;  // for each send function
  std::vector<bool> sends_given_;
  std::vector<std::pair<uint32_t, LeafGradient>> collected_;  // with the leaf's index
  DeviceStreams streams_;
  size_t evaluated_ = 0;
  const torch::autograd::Node* evaluating_ = nullptr;
  bool failed_ = false;
};

}  // namespace rehearsal
