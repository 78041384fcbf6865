#include "core/autograd/pass_walk.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "core/autograd/node_evaluation.h"
#include "core/base/check.h"
#include "core/base/user_code.h"

namespace rehearsal {
namespace {

constexpr std::string_view kLabel = "backward walk";

// The same in every schedule: a pass has one walk at each worker.
CausalId walk_id(const PassName& pass, WorkerId self) {
  return {pass.id.starter_incarnation, mix(mix(pass.id.context.place(), pass.id.epoch), self.value),
          pass.starter.value};
}

// Leaves, send and receive functions run no code of their own that another pass could disturb.
bool needs_turn(torch::autograd::Node& node) {
  const bool plain = dynamic_cast<torch::autograd::AccumulateGrad*>(&node) != nullptr ||
                     dynamic_cast<SendRpcBackward*>(&node) != nullptr ||
                     dynamic_cast<RecvRpcBackward*>(&node) != nullptr;
  if (!plain) return may_run_user_code(node);
  return !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
         !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         node.tensor_post_acc_grad_hooks() != nullptr;
}

}  // namespace

PassWalk::PassWalk(const PassName& pass, WalkScope scope, NodeStrand& strand, NodeTurns& turns,
                   PassWalkListener& listener)
    : pass_(pass.id),
      strand_(strand),
      turns_(turns),
      listener_(listener),
      execution_(strand.make_execution(walk_id(pass, strand.self()), kLabel)),
      scope_(std::move(scope)) {}

void PassWalk::trace(EventKind kind) {
  strand_.trace().on_event({.kind = kind,
                            .worker = strand_.self(),
                            .id = execution_->started_by(),
                            .text = execution_->label()});
}

void PassWalk::take_turn(std::vector<Delivery> arrived) {
  REHEARSAL_CHECK(resting());
  walking_ = true;
  trace(EventKind::execution_started);
  strand_.runtime().execute(
      *execution_, StackPlacement::pool,
      // The execution lasts as long as this closure; the walk may not.
      [self = shared_from_this(), execution = execution_, strand = strand_.shared_from_this(),
       arrived = std::move(arrived)]() mutable {
        Status status =
            run_user_code(strand->name(), kLabel, [&] { self->run(std::move(arrived)); });
        strand->post_always([self = std::move(self), strand, status = std::move(status)]() mutable {
          self->trace(EventKind::execution_ended);
          self->walking_ = false;
          if (!strand->closed()) self->listener_.on_walk_rests(self->pass_, std::move(status));
          // Also if others have it still: who is last depends on threads, and what is done
          // here must not.
          strand->release_later(std::move(self));
        });
      });
}

void PassWalk::run(std::vector<Delivery> arrived) {
  if (!walk_) {
    walk_.emplace(std::move(*scope_), *this);
    scope_.reset();
  }
  for (Delivery& delivery : arrived)
    walk_->deliver(*delivery.function, std::move(delivery.gradients));
  walk_->run();
  if (!walk_->finished()) return;
  for (LeafGradient& gradient : walk_->take_gradients()) gradients_.accumulate(std::move(gradient));
}

LeafGradients PassWalk::take_gradients() {
  REHEARSAL_CHECK(resting());
  REHEARSAL_CHECK(walk_.has_value());
  REHEARSAL_CHECK(walk_->finished());
  return std::move(gradients_);
}

void PassWalk::on_received_gradients(RecvRpcBackward& function,
                                     torch::autograd::variable_list gradients) {
  const GradientRoute& route = function.route();
  if (route.context != pass_.context)
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = "a root depends on a tensor that was received in another autograd "
                            "context, " +
                            to_string(route.context) + ": a pass follows one context only",
                    .worker = strand_.name(),
                    .function = {},
                    .chain = {}});
  for (at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    if (gradient.is_sparse()) gradient = gradient.to_dense();
    gradient = gradient.detach();
  }
  strand_.post(
      [this, self = shared_from_this(), route, gradients = std::move(gradients)]() mutable {
        listener_.on_gradients_leave(pass_, route, std::move(gradients));
      });
}

void PassWalk::enter(torch::autograd::Node& node) {
  inside_guarded_node_ = false;
  if (!needs_turn(node)) return;
  const Status entered = strand_.wait("a node of the graph that another pass is in", pass_.context,
                                      [&](WaitHandle wait) {
                                        turns_.enter(node, [this, wait, &node] {
                                          if (!wait.lasts()) return turns_.leave(node);
                                          wait.end();
                                        });
                                      });
  if (!entered.ok()) throw RpcError(entered.error());
  inside_guarded_node_ = true;
}

void PassWalk::leave(torch::autograd::Node& node) noexcept {
  if (!inside_guarded_node_) return;
  inside_guarded_node_ = false;
  strand_.post([this, self = shared_from_this(), &node] { turns_.leave(node); });
}

}  // namespace rehearsal
