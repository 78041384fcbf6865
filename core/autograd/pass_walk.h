#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/api/leaf_gradients.h"
#include "core/autograd/graph_walk.h"
#include "core/autograd/node_turns.h"
#include "core/base/node_strand.h"
#include "core/wire/message.h"

namespace rehearsal {

// Gradients that came for a send function.
struct Delivery {
  std::shared_ptr<SendRpcBackward> function;
  torch::autograd::variable_list gradients;
};

// The events that the walk tells its pass; on the strand.
class PassWalkListener {
 public:
  virtual ~PassWalkListener() = default;

  // These gradients have to go to the peer that the route names.
  virtual void on_gradients_leave(const PassId& pass, const GradientRoute& route,
                                  std::vector<at::Tensor> gradients) = 0;

  // No node is ready any more, or why the walk ended.
  virtual void on_walk_rests(const PassId& pass, Status status) = 0;
};

// The walk of one pass at one worker. It runs in turns, each on an execution's stack: `take_turn`
// starts one on the strand; it evaluates what is ready and rests.
class PassWalk final : public WalkHost, public std::enable_shared_from_this<PassWalk> {
 public:
  // `listener`, `strand` and `turns` outlive every turn.
  PassWalk(const PassName& pass, WalkScope scope, NodeStrand& strand, NodeTurns& turns,
           PassWalkListener& listener);

  // REQUIRES: it rests. On the strand.
  void take_turn(std::vector<Delivery> arrived);
  [[nodiscard]] bool resting() const { return !walking_; }

  // The gradients that the pass adds to the context. REQUIRES: it rests and every send function has
  // its gradients. On the strand, once.
  [[nodiscard]] LeafGradients take_gradients();

  void set_deadline(std::optional<Instant> deadline) { execution_->deadline = deadline; }

  // WalkHost.
  void on_received_gradients(RecvRpcBackward& function,
                             torch::autograd::variable_list gradients) override;
  void enter(torch::autograd::Node& node) override;
  void leave(torch::autograd::Node& node) noexcept override;

 private:
  void run(std::vector<Delivery> arrived);
  void trace(EventKind kind);

  const PassId pass_;
  NodeStrand& strand_;
  NodeTurns& turns_;
  PassWalkListener& listener_;
  const std::shared_ptr<Execution> execution_;
  bool walking_ = false;  // the strand's; what follows belongs to the turn while one lasts
  std::optional<WalkScope> scope_;  // until the first turn
  std::optional<GraphWalk> walk_;
  LeafGradients gradients_;
  bool inside_guarded_node_ = false;
};

}  // namespace rehearsal
