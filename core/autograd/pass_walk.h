#pragma once

#include <array>
#include <map>
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
  Payload gradients;
  // Of a pass that is recorded itself: the message that brought them, and from whom.
  std::optional<GradientRoute> recorded;
  std::vector<uint32_t> unreached;  // tensors that the roots do not depend on
};

// A part of the work behind a gate of the walk, which may run now.
struct OpenedGate {
  uint32_t gate = 0;
  GatePart part = GatePart::flow;
};

// The work of a walk before it goes on.
struct WalkTurn {
  std::vector<Delivery> arrived;
  std::vector<ExpectedGradients> marked;  // the roots depend on these
  std::vector<OpenedGate> opened;
  bool look = false;    // find out what the roots depend on
  bool resume = false;  // what is not marked will get no gradients

  [[nodiscard]] bool empty() const {
    return arrived.empty() && marked.empty() && opened.empty() && !look && !resume;
  }
};

// Gradients that leave for the peer that the route names, ready to be sent.
struct LeavingGradients {
  GradientRoute route;
  Payload gradients;
  std::shared_ptr<SendRpcBackward> recorded;  // of a pass that is recorded itself; may be null
  std::vector<uint32_t> unreached;            // tensors that the roots do not depend on
};

// The roots depend on these tensors of a message, which the peer that the route names has sent.
struct LeavingMark {
  GradientRoute route;
  std::vector<uint32_t> tensors;
};

// The events that the walk tells its pass; on the strand.
class PassWalkListener {
 public:
  virtual ~PassWalkListener() = default;

  virtual void on_gradients_leave(const PassId& pass, LeavingGradients leaving) = 0;

  // At least one.
  virtual void on_marks_leave(const PassId& pass, std::vector<LeavingMark> marks) = 0;

  // A gate lets the walk go on, or says why it never does.
  virtual void on_gate_opens(const PassId& pass, const OpenedGate& opened, Status status) = 0;

  // No node is ready any more, or why the walk ended.
  virtual void on_walk_rests(const PassId& pass, Status status) = 0;
};

// The walk of one pass at one worker. It runs in turns, each on an execution's stack: `take_turn`
// starts one on the strand; it evaluates what is ready and rests.
class PassWalk final : public WalkHost, public std::enable_shared_from_this<PassWalk> {
 public:
  // `listener`, `strand` and `turns` outlive every turn. `streams`: of the context.
  PassWalk(const PassName& pass, WalkScope scope, NodeStrand& strand, NodeTurns& turns,
           PassWalkListener& listener, Streams streams);

  // REQUIRES: it rests. On the strand.
  void take_turn(WalkTurn turn);
  [[nodiscard]] bool resting() const { return !walking_; }

  // All that the roots depend on has been evaluated, as far as is known here. REQUIRES: it rests,
  // after its first turn. On the strand.
  [[nodiscard]] bool complete() const { return walk_ && walk_->complete(); }

  // It waits at so many gates for their flow, which may make gradients leave. REQUIRES: it rests.
  // On the strand.
  [[nodiscard]] uint32_t closed_gates() const { return waiting_.at(0); }
  // Behind so many it waits to work on leaves, which makes none leave. As above.
  [[nodiscard]] uint32_t held_sections() const { return waiting_.at(1); }

  // The gradients that the pass adds to the context. REQUIRES: it rests and is complete. On the
  // strand, once.
  [[nodiscard]] LeafGradients take_gradients();

  void set_deadline(std::optional<Instant> deadline) { execution_->deadline = deadline; }

  // WalkHost.
  void on_received_gradients(RecvRpcBackward& function, torch::autograd::variable_list gradients,
                             std::vector<uint32_t> unreached) override;
  void enter(torch::autograd::Node& node) override;
  void leave(torch::autograd::Node& node) noexcept override;
  void on_gate(uint32_t number, PassGate& gate, GatePart part) override;

 private:
  void run(WalkTurn turn);
  void deliver(Delivery delivery);
  void tell_marks(std::vector<LiveInputs> inputs);
  [[nodiscard]] std::shared_ptr<SendRpcBackward> record_leaving(
      const GradientRoute& route, const torch::autograd::variable_list& gradients) const;
  [[nodiscard]] Payload ready_to_send(torch::autograd::variable_list gradients,
                                      std::vector<TensorPlace> places, WorkerId to) const;
  void trace(EventKind kind);

  const PassId pass_;
  const bool create_graph_;
  NodeStrand& strand_;
  NodeTurns& turns_;
  PassWalkListener& listener_;
  const std::shared_ptr<Execution> execution_;
  bool walking_ = false;  // the strand's; what follows belongs to the turn while one lasts
  std::optional<WalkScope> scope_;  // until the first turn
  std::optional<GraphWalk> walk_;
  std::map<uint32_t, LeafGradients> gradients_;  // by the leaf's place in the walk
  std::array<uint32_t, 2> waiting_{};            // by part
  bool inside_guarded_node_ = false;
};

}  // namespace rehearsal
