#include "core/autograd/passes.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/session/session.h"

namespace rehearsal {

// ---- starting and joining -----------------------------------------------------

void Passes::start(ContextRecord& context, PassRequest request) {
  if (!context.lost.empty()) return request.done(context.lost.begin()->second);
  const PassName name{.id = {context.id, context.next_epoch++, options_.incarnation},
                      .starter = options_.self,
                      .retain_graph = request.retain_graph,
                      .context_creator = context.creator};
  Pass& pass = pass_of(context, name);
  pass.started_here = true;
  pass.done = std::move(request.done);
  if (request.deadline)
    pass.deadline = deadlines_.add(*request.deadline, [this, id = name.id] {
      const auto found = passes_.find(id);
      REHEARSAL_CHECK(found != passes_.end());
      fail(found->second, {.kind = ErrorKind::timeout,
                           .text = "the backward pass did not end before its deadline",
                           .worker = strand_.name(),
                           .function = "backward",
                           .chain = {}});
    });
  make_walk(pass, std::move(request.roots));
  pass.walk->set_deadline(request.deadline);
  take_turn(pass);
}

Passes::Pass& Passes::pass_of(ContextRecord& context, const PassName& name) {
  const auto [place, fresh] = passes_.try_emplace(name.id);
  Pass& pass = place->second;
  if (!fresh) return pass;
  pass.name = name;
  pass.context = &context;
  strand_.trace().on_event({.kind = EventKind::pass_started,
                            .worker = options_.self,
                            .peer = name.starter,
                            .id = context.id,
                            .number = name.id.epoch});
  return pass;
}

void Passes::make_walk(Pass& pass, std::vector<WalkRoot> roots) {
  WalkScope scope{.roots = std::move(roots),
                  .sends = {},
                  .makers = makers_.table(),
                  .retain_graph = pass.name.retain_graph};
  for (const auto& [id, sent] : pass.context->sent) scope.sends.push_back(sent.function);
  pass.walk = std::make_shared<PassWalk>(pass.name, std::move(scope), strand_, turns_, *this);
}

bool Passes::started_by_other_life(const PassName& name) const {
  if (name.starter == options_.self) return name.id.starter_incarnation != options_.incarnation;
  return sessions_.lost(name.starter).has_value() ||
         sessions_.incarnation(name.starter) != name.id.starter_incarnation;
}

// Whether this worker may take part in the pass. If not, the sender hears why.
bool Passes::admit(WorkerId from, const ContextRecord* context, const PassName& name) {
  Error why{.kind = ErrorKind::autograd,
            .text = {},
            .worker = strand_.name(),
            .function = "backward",
            .chain = {}};
  if (context == nullptr) {
    strand_.mark("a message of a pass came for a context that has ended");
    why.text = "the autograd context " + to_string(name.id.context) + " has ended";
  } else if (const auto dead = context->dead.find(name.id);
             dead != context->dead.end() && !options_.mutants.on(Mutant::forget_dead_epochs)) {
    strand_.mark("a late message of a failed pass was refused");
    why = dead->second;
  } else if (started_by_other_life(name)) {
    why.kind = ErrorKind::peer_lost;
    why.text = "the backward pass ends: its starter '" + this->name(name.starter) + "' is lost";
    why.worker = this->name(name.starter);
  } else {
    return true;
  }
  sessions_.send(from, Message{PassFailed{name, std::move(why)}});
  return false;
}

// ---- gradients ----------------------------------------------------------------

void Passes::send(Pass& pass, WorkerId to, Message message) {
  send(pass, to, std::move(message), SendOptions());
}

void Passes::send(Pass& pass, WorkerId to, Message message, SendOptions options) {
  if (to != options_.self) pass.neighbours.insert(to);
  sessions_.send(to, std::move(message), std::move(options));
}

void Passes::on_gradients_leave(const PassId& id, const GradientRoute& route,
                                std::vector<at::Tensor> gradients) {
  const auto found = passes_.find(id);
  if (found == passes_.end())
    return strand_.release_later(std::make_shared<std::vector<at::Tensor>>(std::move(gradients)));
  Pass& pass = found->second;
  if (const MaybeError& lost = sessions_.lost(route.peer)) return fail(pass, *lost);
  if (leavers_.contains(route.peer)) {
    const std::string& name = options_.names[route.peer.value];
    return fail(pass, {.kind = ErrorKind::peer_lost,
                       .text = "worker '" + name + "' is leaving the group",
                       .worker = name});
  }
  const auto is_defined = [](const at::Tensor& gradient) { return gradient.defined(); };
  if (options_.mutants.on(Mutant::undefined_gradient_not_sent) &&
      std::none_of(gradients.begin(), gradients.end(), is_defined))
    return;
  ++pass.unanswered;
  const Error changed{.kind = ErrorKind::autograd,
                      .text =
                          "a gradient was changed in place before it was acknowledged, and "
                          "the link was lost meanwhile",
                      .worker = strand_.name(),
                      .function = "backward",
                      .chain = {}};
  SendOptions options;
  options.carried = std::make_unique<CarriedTensors>(
      CarriedTensors{.tensors = gradients,
                     .instead = Message{PassFailed{pass.name, changed}},
                     .on_changed = [this, id, changed] {
                       const auto still = passes_.find(id);
                       if (still != passes_.end()) fail(still->second, changed);
                     }});
  Gradients message{.pass = pass.name, .message = route.message, .gradients = {}};
  message.gradients.tensors = std::move(gradients);
  send(pass, route.peer, Message{std::move(message)}, std::move(options));
}

void Passes::on_gradients(WorkerId from, ContextRecord* context, Gradients message) {
  const PassName name = message.pass;
  if (admit(from, context, name)) take_in(pass_of(*context, name), from, std::move(message));
}

void Passes::take_in(Pass& pass, WorkerId from, Gradients message) {
  if (from != options_.self) pass.neighbours.insert(from);
  const auto sent = pass.context->sent.find(message.message);
  const bool known = sent != pass.context->sent.end() &&
                     sent->second.function->num_outputs() == message.gradients.tensors.size();
  if (!known || pass.stage != Stage::gradients || !pass.given.insert(message.message).second)
    return fail(pass, {.kind = ErrorKind::autograd,
                       .text = "'" + this->name(from) +
                               "' sent gradients that fit no message "
                               "which waits for them: " +
                               to_string(message.message),
                       .worker = strand_.name(),
                       .function = "backward",
                       .chain = {}});
  const bool engages = !pass.started_here && !pass.engaged_by &&
                       !options_.mutants.on(Mutant::backward_returns_early);
  if (engages)
    pass.engaged_by = {from, message.message};
  else
    send(pass, from, Message{GradientsAnswered{pass.name, message.message}});
  pass.arrived.push_back({sent->second.function, std::move(message.gradients.tensors)});
  if (!pass.walk) make_walk(pass, {});
  if (pass.walk->resting()) take_turn(pass);
}

void Passes::take_turn(Pass& pass) {
  ++running_walks_;
  pass.walk->take_turn(std::exchange(pass.arrived, {}));
}

void Passes::on_walk_rests(const PassId& id, Status status) {
  --running_walks_;
  const auto found = passes_.find(id);
  if (found != passes_.end()) {
    Pass& pass = found->second;
    if (!status.ok())
      fail(pass, status.error());
    else if (!pass.arrived.empty())
      take_turn(pass);
    else
      settle(pass);
  }
  if (on_progress_) on_progress_();
}

void Passes::on_answered(WorkerId from, const GradientsAnswered& message) {
  const auto found = passes_.find(message.pass.id);
  if (found == passes_.end()) return strand_.mark("an answer came for a pass that has failed");
  Pass& pass = found->second;
  if (pass.unanswered == 0)
    return fail(pass, protocol_error(from, "answered gradients that were not sent, for message " +
                                               to_string(message.message)));
  --pass.unanswered;
  settle(pass);
}

// A worker that rests with all its messages answered tells who engaged it.
void Passes::settle(Pass& pass) {
  if (pass.stage != Stage::gradients || pass.unanswered > 0) return;
  if (!pass.walk || !pass.walk->resting()) return;
  if (pass.started_here) return start_wave(pass, Stage::checked);
  if (!pass.engaged_by) return;
  const auto [to, message] = *std::exchange(pass.engaged_by, std::nullopt);
  send(pass, to, Message{GradientsAnswered{pass.name, message}});
}

}  // namespace rehearsal
