#include "core/autograd/pass_walk.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "core/autograd/node_evaluation.h"
#include "core/base/check.h"
#include "core/base/engine_threads.h"
#include "core/base/user_code.h"
#include "core/values/value_io.h"

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
                   PassWalkListener& listener, Streams streams)
    : pass_(pass.id),
      create_graph_(pass.create_graph),
      strand_(strand),
      turns_(turns),
      listener_(listener),
      execution_(strand.make_execution(walk_id(pass, strand.self()), kLabel)),
      scope_(std::move(scope)) {
  execution_->streams = std::move(streams);
}

void PassWalk::trace(EventKind kind) {
  strand_.trace().on_event({.kind = kind,
                            .worker = strand_.self(),
                            .id = execution_->started_by(),
                            .text = execution_->label()});
}

void PassWalk::take_turn(WalkTurn turn) {
  REHEARSAL_CHECK(resting());
  walking_ = true;
  trace(EventKind::execution_started);
  strand_.runtime().execute(
      *execution_, StackPlacement::pool,
      // The execution lasts as long as this closure; the walk may not.
      [self = shared_from_this(), execution = execution_, strand = strand_.shared_from_this(),
       turn = std::move(turn)]() mutable {
        Status status = run_user_code(strand->name(), kLabel, [&] {
          const InStreams in(execution->streams);
          const EngineThreads engine(strand->devices());
          self->run(std::move(turn));
        });
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

namespace {

// Its memory is of other streams than those that read it from now on.
void keep_until_read(const at::Tensor& tensor, const NodeStrand& strand) {
  if (strand.mutants().on(Mutant::walk_records_nothing)) return;
  if (!tensor.defined() || tensor.device().is_cpu()) return;
  const c10::Device device = tensor.device();
  tensor.record_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

}  // namespace

void PassWalk::run(WalkTurn turn) {
  if (!walk_) {
    for (const WalkRoot& root : scope_->roots) keep_until_read(root.gradient, strand_);
    walk_.emplace(std::move(*scope_), *this);
    scope_.reset();
  }
  for (Delivery& delivery : turn.arrived) deliver(std::move(delivery));
  if (turn.look || !turn.marked.empty()) tell_marks(walk_->find_live(turn.marked));
  if (turn.resume) walk_->drop_undecided();
  walk_->run();
  for (const OpenedGate& opened : turn.opened) {
    --waiting_.at(static_cast<size_t>(opened.part));
    walk_->run_behind(opened.gate, opened.part);
  }
  for (auto& [place, gradient] : walk_->take_gradients()) {
    keep_until_read(gradient.gradient, strand_);
    gradients_[place].accumulate(std::move(gradient));
  }
}

void PassWalk::deliver(Delivery delivery) {
  if (!walk_->waits_for(*delivery.function))
    throw RpcError({.kind = ErrorKind::protocol,
                    .text = "gradients came for a message that the roots were said not to depend "
                            "on: " +
                            to_string(delivery.function->route().message),
                    .worker = strand_.name(),
                    .function = {},
                    .chain = {}});
  put_on_devices(delivery.gradients, strand_);
  if (delivery.recorded)
    RecvRpcBackward::receive(*delivery.recorded, delivery.gradients.tensors,
                             delivery.gradients.places(),
                             "the gradients of a backward pass for '" + strand_.name() + "'");
  walk_->deliver(*delivery.function, std::move(delivery.gradients.tensors),
                 std::move(delivery.unreached));
}

void PassWalk::tell_marks(std::vector<LiveInputs> inputs) {
  std::vector<LeavingMark> marks;
  for (LiveInputs& live : inputs)
    // One of another context is an error once its gradients are there.
    if (live.function->route().context == pass_.context)
      marks.push_back({live.function->route(), std::move(live.tensors)});
  if (marks.empty()) return;
  strand_.post([this, self = shared_from_this(), marks = std::move(marks)]() mutable {
    listener_.on_marks_leave(pass_, std::move(marks));
  });
}

void PassWalk::on_gate(uint32_t number, PassGate& gate, GatePart part) {
  ++waiting_.at(static_cast<size_t>(part));
  gate.ask(part, [strand = strand_.shared_from_this(), listener = &listener_, pass = pass_,
                  opened = OpenedGate{number, part}](Status status) {
    if (!strand->closed()) listener->on_gate_opens(pass, opened, std::move(status));
  });
}

LeafGradients PassWalk::take_gradients() {
  REHEARSAL_CHECK(resting());
  REHEARSAL_CHECK(complete());
  const InStreams in(execution_->streams);
  LeafGradients all;
  for (const auto& [place, gradients] : gradients_) all.add_all(gradients);
  gradients_.clear();
  return all;
}

Payload PassWalk::ready_to_send(torch::autograd::variable_list gradients,
                                std::vector<TensorPlace> places, WorkerId to) const {
  Payload payload;
  payload.tensors = std::move(gradients);
  try {
    for (const at::Tensor& gradient : payload.tensors)
      if (std::string why = gradient.defined() ? why_without_form(gradient) : ""; !why.empty())
        throw BadValue(why);
    if (!places.empty()) payload.on_devices().places = std::move(places);
    ValueWriter(payload).finish(nullptr, {}, device_way(strand_, to));
  } catch (const BadValue& bad) {
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = std::string("a gradient cannot be sent: ") + bad.what(),
                    .worker = strand_.name(),
                    .function = "backward",
                    .chain = {}});
  }
  return payload;
}

void PassWalk::on_received_gradients(RecvRpcBackward& function,
                                     torch::autograd::variable_list gradients,
                                     std::vector<uint32_t> unreached) {
  const GradientRoute& route = function.route();
  if (route.context != pass_.context)
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = "gradients would be lost: the pass reached " + function.message() +
                            " in another autograd context, " + to_string(route.context) +
                            ": a pass follows one context only. Make that call in the context of "
                            "the pass, or detach() the tensor",
                    .worker = strand_.name(),
                    .function = {},
                    .chain = {}});
  std::shared_ptr<SendRpcBackward> recorded;
  if (create_graph_)
    recorded = record_leaving(route, gradients);
  else
    for (at::Tensor& gradient : gradients)
      if (gradient.defined()) gradient = gradient.detach();
  LeavingGradients leaving{
      route, ready_to_send(std::move(gradients), function.gradient_places(), route.peer),
      std::move(recorded), std::move(unreached)};
  strand_.post([this, self = shared_from_this(), leaving = std::move(leaving)]() mutable {
    listener_.on_gradients_leave(pass_, std::move(leaving));
  });
}

// The id of the message follows from the pass and from the message whose gradients it carries: it
// is the same in every schedule.
std::shared_ptr<SendRpcBackward> PassWalk::record_leaving(
    const GradientRoute& route, const torch::autograd::variable_list& gradients) const {
  if (!need_gradients(gradients)) return nullptr;
  const CausalId& walk = execution_->started_by();
  const CausalId id{walk.incarnation, mix(walk.place(), route.message.ordinal),
                    route.message.path.low};
  return SendRpcBackward::make({route.context, AutogradMessageId{id}, route.peer}, gradients);
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
