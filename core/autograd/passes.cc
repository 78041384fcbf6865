#include "core/autograd/passes.h"

#include <algorithm>
#include <functional>

#include "core/base/check.h"
#include "core/base/stream_set.h"
#include "core/base/user_code.h"
#include "core/session/session.h"

namespace rehearsal {
namespace {

// Positions in ascending order, none twice, as a walk gives them.
bool all_below(const std::vector<uint32_t>& positions, size_t end) {
  return std::adjacent_find(positions.begin(), positions.end(), std::greater_equal<>()) ==
             positions.end() &&
         (positions.empty() || positions.back() < end);
}

// A pass may mark as much as its context has sent: about `marked_max` tensors go in one message.
std::vector<std::vector<Mark>> in_messages(std::vector<Mark> marks, uint64_t marked_max) {
  std::vector<std::vector<Mark>> messages;
  uint64_t marked = marked_max;
  for (Mark& mark : marks) {
    if (marked >= marked_max) {
      messages.emplace_back();
      marked = 0;
    }
    marked += 1 + mark.tensors.size();
    messages.back().push_back(std::move(mark));
  }
  return messages;
}

}  // namespace

// ---- starting and joining -----------------------------------------------------

void Passes::start(ContextRecord& context, PassRequest request) {
  if (context.in_doubt) return request.done(*context.in_doubt);
  if (context.taken_back.size() > kTakenBackMax)
    return request.done(Error{.kind = ErrorKind::overloaded,
                              .text = std::to_string(context.taken_back.size()) +
                                      " backward passes of the autograd context failed at their "
                                      "end: go on in a new context",
                              .worker = strand_.name(),
                              .function = "backward",
                              .chain = {}});
  PassName name{.id = {context.id, context.next_epoch++, options_.incarnation},
                .starter = options_.self,
                .retain_graph = request.retain_graph,
                .create_graph = request.create_graph,
                .mode = request.mode,
                .context_creator = context.creator,
                .settled = 0,
                .taken_back = context.taken_back};
  name.settled = name.id.epoch;
  for (const auto& [id, pass] : passes_)
    if (pass.started_here && pass.context == &context)
      name.settled = std::min(name.settled, id.epoch);
  Pass& pass = begin(context, name);
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
  if (!hear_starter(pass)) return;
  make_walk(pass, std::move(request.roots));
  pass.walk->set_deadline(request.deadline);
  go_on(pass);
}

Passes::Pass& Passes::begin(ContextRecord& context, const PassName& name) {
  Pass& pass = passes_[name.id];
  pass.name = name;
  pass.context = &context;
  strand_.trace().on_event({.kind = EventKind::pass_started,
                            .worker = options_.self,
                            .peer = name.starter,
                            .id = context.id,
                            .number = name.id.epoch,
                            .digest = name.id.starter_incarnation.value});
  return pass;
}

Passes::Pass* Passes::join(WorkerId from, ContextRecord& context, const PassName& name,
                           std::string_view field) {
  const auto known = passes_.find(name.id);
  const bool is_new = known == passes_.end();
  const bool counts = is_new && from != options_.self;
  if (counts && !brought_.add(from, options_.limits.passes)) {
    if (from == name.starter)
      sessions_.accuse(from, {field, "is one of more than one worker may have at once"});
    else
      sessions_.send(from, Message{PassFailed{name, too_many("backward passes", from)}});
    return nullptr;
  }
  Pass& pass = is_new ? begin(context, name) : known->second;
  if (counts) pass.brought_by = from;
  if (from != options_.self) pass.neighbours.insert(from);
  return from != name.starter || hear_starter(pass) ? &pass : nullptr;
}

// LibTorch may be unable to add what former passes have added.
bool Passes::hear_starter(Pass& pass) {
  if (std::exchange(pass.heard_starter, true)) return true;
  const Status settled = run_user_code(strand_.name(), "backward", [&] {
    const bool elsewhere = options_.mutants.on(Mutant::gradients_settled_elsewhere);
    const InStreams in(elsewhere ? nullptr : pass.context->streams);
    pass.context->gradients.settle(pass.name);
  });
  if (!settled.ok()) fail(pass, settled.error());
  return settled.ok();
}

Error Passes::too_many(std::string_view what, WorkerId whose) const {
  return {.kind = ErrorKind::overloaded,
          .text = "worker '" + name(whose) + "' has as many " + std::string(what) + " at '" +
                  strand_.name() + "' as one may have",
          .worker = strand_.name(),
          .function = "backward",
          .chain = {}};
}

void Passes::make_walk(Pass& pass, std::vector<WalkRoot> roots) {
  WalkScope scope{.roots = std::move(roots),
                  .sends = {},
                  .makers = makers_.table(),
                  .retain_graph = pass.name.retain_graph,
                  .create_graph = pass.name.create_graph,
                  .hands_out_nothing = pass.name.mode == PassMode::fast};
  for (const auto& [id, sent] : pass.context->sent) scope.sends.push_back(sent.function);
  const bool elsewhere = options_.mutants.on(Mutant::walk_in_other_streams);
  pass.walk = std::make_shared<PassWalk>(pass.name, std::move(scope), strand_, turns_, *this,
                                         elsewhere ? nullptr : pass.context->streams);
}

bool Passes::started_by_other_life(const PassName& name) const {
  if (name.starter == options_.self) return name.id.starter_incarnation != options_.incarnation;
  return sessions_.lost(name.starter).has_value() ||
         sessions_.incarnation(name.starter) != name.id.starter_incarnation;
}

// Why this worker takes no part in the pass, if so.
MaybeError Passes::why_refused(WorkerId from, const ContextRecord* context,
                               const PassName& name) const {
  Error why{.kind = ErrorKind::autograd,
            .text = {},
            .worker = strand_.name(),
            .function = "backward",
            .chain = {}};
  const bool forgets = options_.mutants.on(Mutant::forget_dead_epochs);
  const auto known = passes_.find(name.id);
  if (context == nullptr) {
    strand_.mark("a message of a pass came for a context that has ended");
    why.text = "the autograd context " + to_string(name.id.context) + " has ended";
  } else if (const auto dead = context->dead.find(name.id);
             dead != context->dead.end() && !forgets) {
    strand_.mark("a late message of a failed pass was refused");
    why = dead->second;
  } else if (context->ended.contains(name.id)) {
    why.kind = ErrorKind::protocol;
    why.text = "the backward pass has ended, and '" + this->name(from) + "' goes on with it";
  } else if (context->in_doubt && known == passes_.end()) {
    why = *context->in_doubt;
  } else if (started_by_other_life(name)) {
    why.kind = ErrorKind::peer_lost;
    why.text = "the backward pass ends: its starter '" + this->name(name.starter) + "' is lost";
    why.worker = this->name(name.starter);
  } else if (known == passes_.end() && name.starter == options_.self && !forgets) {
    // Its sender may have been told so by another one: it is not to blame.
    why.text = "'" + strand_.name() + "' has not begun this backward pass";
  } else if (known != passes_.end() && known->second.name != name) {
    why.text = "'" + strand_.name() + "' was told otherwise what this backward pass is";
  } else {
    return std::nullopt;
  }
  return why;
}

// Whether this worker may take part in the pass. If not, the sender hears why.
bool Passes::admit(WorkerId from, const ContextRecord* context, const PassName& name) {
  MaybeError why = why_refused(from, context, name);
  if (!why) return true;
  sessions_.send(from, Message{PassFailed{name, *std::move(why)}});
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

MaybeError Passes::why_unreachable(const Pass& pass, WorkerId peer) const {
  if (const auto lost = pass.context->lost.find(peer); lost != pass.context->lost.end())
    return lost->second;
  if (const MaybeError& lost = sessions_.lost(peer)) return lost;
  if (!leavers_.contains(peer)) return std::nullopt;
  return Error{.kind = ErrorKind::peer_lost,
               .text = "worker '" + name(peer) + "' is leaving the group",
               .worker = name(peer)};
}

void Passes::on_gradients_leave(const PassId& id, LeavingGradients leaving) {
  const auto found = passes_.find(id);
  if (found == passes_.end())
    return strand_.release_later(std::make_shared<LeavingGradients>(std::move(leaving)));
  Pass& pass = found->second;
  const GradientRoute& route = leaving.route;
  if (const MaybeError why = why_unreachable(pass, route.peer)) return fail(pass, *why);
  if (leaving.recorded && !pass.started_here &&
      !caused_sends_.add(pass.name.starter, options_.limits.sends))
    return fail(pass, too_many("recorded messages", pass.name.starter));
  const std::vector<at::Tensor>& tensors = leaving.gradients.tensors;
  const auto is_defined = [](const at::Tensor& gradient) { return gradient.defined(); };
  if (options_.mutants.on(Mutant::undefined_gradient_not_sent) &&
      std::none_of(tensors.begin(), tensors.end(), is_defined))
    return;
  pass.gradients.note_sent(route.peer, route.message);
  const Error changed{.kind = ErrorKind::autograd,
                      .text =
                          "a gradient was changed in place when it had yet to be sent, or to be "
                          "sent again",
                      .worker = strand_.name(),
                      .function = "backward",
                      .chain = {}};
  SendOptions options;
  options.carried = std::make_unique<CarriedTensors>(CarriedTensors{
      .tensors = carried_tensors(leaving.gradients),
      .instead = Message{PassFailed{pass.name, changed}},
      .on_changed = [this, id,
                     changed = Error(changed)](const std::optional<std::string>& failure) mutable {
        const auto still = passes_.find(id);
        if (still == passes_.end()) return;
        if (failure) changed.text = *failure;
        fail(still->second, std::move(changed));
      }});
  Gradients message{pass.name, route.message, std::move(leaving.gradients), std::nullopt,
                    std::move(leaving.unreached)};
  if (leaving.recorded) {
    const AutogradMessageId made = leaving.recorded->route().message;
    message.autograd = AutogradMetadata{pass.context->id, made, pass.context->creator};
    pass.context->sent.insert_or_assign(
        made, SentMessage{std::move(leaving.recorded), "the gradients of a backward pass", id,
                          pass.started_here ? std::nullopt : std::optional(pass.name.starter)});
  }
  send(pass, route.peer, Message{std::move(message)}, std::move(options));
}

void Passes::on_gradients(WorkerId from, ContextRecord* context, Gradients message) {
  const PassName name = message.pass;
  if (context != nullptr)
    if (const auto violation = violation_of(from, *context, message))
      return sessions_.accuse(from, *violation);
  if (!admit(from, context, name)) return;
  if (Pass* const pass = join(from, *context, name, "Gradients.pass"))
    take_in(*pass, from, std::move(message));
}

// Gradients come from whom the message was sent to, one for each tensor. A message that is not
// known may be one of a pass that has failed meanwhile.
std::optional<Violation> Passes::violation_of(WorkerId from, const ContextRecord& context,
                                              const Gradients& message) const {
  if (!takes_part(from, context))
    return Violation{"Gradients.pass", "is in a context that its sender takes no part in"};
  const auto sent = context.sent.find(message.message);
  if (sent == context.sent.end()) return std::nullopt;
  const SendRpcBackward& function = *sent->second.function;
  const size_t tensors = message.gradients.tensors.size();
  if (function.route().peer != from)
    return Violation{"Gradients.message", "was sent to another worker"};
  if (function.num_outputs() != tensors)
    return Violation{"Gradients.gradients", "are not as many as the message has tensors"};
  if (!all_below(message.unreached, tensors))
    return Violation{"Gradients.unreached", "names tensors that the message has not"};
  return std::nullopt;
}

// Sends the answer at once, unless it engages this worker: then once it rests.
void Passes::engage(Pass& pass, Diffusion& diffusion, WorkerId from, Message answer) {
  const bool is_root = pass.started_here || pass.in_wave;
  const bool hasty = &diffusion == &pass.marks
                         ? options_.mutants.on(Mutant::mark_answered_at_once)
                         : options_.mutants.on(Mutant::backward_returns_early);
  if (auto now = diffusion.take_in({from, std::move(answer)}, !is_root && !hasty))
    send(pass, now->to, std::move(now->message));
}

void Passes::take_in(Pass& pass, WorkerId from, Gradients message) {
  const auto sent = pass.context->sent.find(message.message);
  const size_t tensors = message.gradients.tensors.size();
  const bool known = sent != pass.context->sent.end() &&
                     sent->second.function->num_outputs() == tensors &&
                     all_below(message.unreached, tensors);
  const bool early = pass.wave == PassWave::check;  // before we were told to go on
  const bool expected =
      !pass.wave || (pass.name.mode == PassMode::smart && pass.wave != PassWave::commit &&
                     !(early && options_.mutants.on(Mutant::early_gradient_refused)));
  if (!known || !expected || !pass.given.insert(message.message).second)
    return fail(pass, {.kind = ErrorKind::autograd,
                       .text = "'" + this->name(from) +
                               "' sent gradients that fit no message "
                               "which waits for them, by their Gradients.message: " +
                               to_string(message.message),
                       .worker = strand_.name(),
                       .function = "backward",
                       .chain = {}});
  engage(pass, pass.gradients, from, Message{GradientsAnswered{pass.name, message.message}});
  Delivery delivery{sent->second.function, std::move(message.gradients), std::nullopt,
                    std::move(message.unreached)};
  if (message.autograd && pass.name.create_graph)
    delivery.recorded = {pass.context->id, message.autograd->message, from};
  pass.next.arrived.push_back(std::move(delivery));
  go_on(pass);
}

// ---- marks --------------------------------------------------------------------

void Passes::on_marks_leave(const PassId& id, std::vector<LeavingMark> marks) {
  const auto found = passes_.find(id);
  if (found == passes_.end()) return;
  Pass& pass = found->second;
  std::map<WorkerId, std::vector<Mark>> by_peer;
  for (LeavingMark& mark : marks)
    by_peer[mark.route.peer].push_back({mark.route.message, std::move(mark.tensors)});
  for (const auto& [peer, of_peer] : by_peer)
    if (const MaybeError why = why_unreachable(pass, peer)) return fail(pass, *why);
  for (auto& [peer, of_peer] : by_peer) {
    auto messages = in_messages(std::move(of_peer), options_.marked_max);
    if (options_.mutants.on(Mutant::later_marks_not_sent)) messages.resize(1);
    for (std::vector<Mark>& of_message : messages) {
      pass.marks.note_sent(peer);
      send(pass, peer, Message{Marks{pass.name, std::move(of_message)}});
    }
  }
}

void Passes::on_marks(WorkerId from, ContextRecord* context, const Marks& message) {
  if (context != nullptr)
    if (const auto violation = violation_of(from, *context, message))
      return sessions_.accuse(from, *violation);
  if (!admit(from, context, message.pass)) return;
  if (Pass* const pass = join(from, *context, message.pass, "Marks.pass"))
    take_in(*pass, from, message);
}

std::optional<Violation> Passes::violation_of(WorkerId from, const ContextRecord& context,
                                              const Marks& message) const {
  if (!takes_part(from, context))
    return Violation{"Marks.pass", "is in a context that its sender takes no part in"};
  for (const Mark& mark : message.marks) {
    const auto sent = context.sent.find(mark.message);
    if (sent == context.sent.end()) continue;
    if (sent->second.function->route().peer != from)
      return Violation{"Marks.marks", "has a message that was sent to another worker"};
    if (!all_below(mark.tensors, sent->second.function->num_outputs()))
      return Violation{"Marks.marks", "names tensors that its message has not"};
  }
  return std::nullopt;
}

void Passes::take_in(Pass& pass, WorkerId from, const Marks& message) {
  const bool expected = !pass.wave || pass.wave == PassWave::check;
  for (const Mark& mark : message.marks) {
    const auto sent = pass.context->sent.find(mark.message);
    if (!expected || sent == pass.context->sent.end() || pass.given.contains(mark.message) ||
        !all_below(mark.tensors, sent->second.function->num_outputs()))
      return fail(pass, protocol_error(from,
                                       "marked what it cannot have to send gradients for, by its "
                                       "Marks.marks: message " +
                                           to_string(mark.message)));
    pass.next.marked.push_back({sent->second.function, mark.tensors});
  }
  engage(pass, pass.marks, from, Message{MarksAnswered{pass.name}});
  go_on(pass);
}

void Passes::on_marks_answered(WorkerId from, const MarksAnswered& message) {
  const auto found = passes_.find(message.pass.id);
  if (found == passes_.end()) return;  // It has failed.
  Pass& pass = found->second;
  if (!pass.marks.note_answered(from))
    return sessions_.accuse(from, {"MarksAnswered.pass", "has no marks that it could answer"});
  settle(pass);
}

// ---- the walk -----------------------------------------------------------------

// Lets the walk take its next turn, if it rests.
void Passes::go_on(Pass& pass) {
  if (!pass.walk) make_walk(pass, {});
  if (!pass.walk->resting()) return;
  ++running_walks_;
  WalkTurn turn = std::exchange(pass.next, {});
  if (options_.mutants.on(Mutant::undecided_ignored)) turn.resume = true;
  pass.walk->take_turn(std::move(turn));
}

void Passes::on_gate_opens(const PassId& id, const OpenedGate& opened, Status status) {
  const auto found = passes_.find(id);
  if (found == passes_.end()) return;  // It has failed.
  Pass& pass = found->second;
  if (!status.ok()) return fail(pass, status.error());
  pass.next.opened.push_back(opened);
  go_on(pass);
}

void Passes::on_walk_rests(const PassId& id, Status status) {
  --running_walks_;
  const auto found = passes_.find(id);
  if (found != passes_.end()) {
    Pass& pass = found->second;
    if (!status.ok())
      fail(pass, status.error());
    else if (!pass.next.empty())
      go_on(pass);
    else
      settle(pass);
  }
  if (on_progress_) on_progress_();
}

void Passes::on_answered(WorkerId from, const GradientsAnswered& message) {
  const auto found = passes_.find(message.pass.id);
  if (found == passes_.end()) return strand_.mark("an answer came for a pass that has failed");
  Pass& pass = found->second;
  if (!pass.gradients.note_answered(from, message.message))
    return sessions_.accuse(from,
                            {"GradientsAnswered.message", "has no gradients that it could answer"});
  settle(pass);
}

// A worker that rests with all its messages answered tells who engaged it.
void Passes::settle(Pass& pass) {
  if (pass.walk && (!pass.walk->resting() || pass.walk->closed_gates() > 0)) return;
  for (Diffusion* const diffusion : {&pass.gradients, &pass.marks})
    if (auto answer = diffusion->rest()) send(pass, answer->to, std::move(answer->message));
  if (pass.wave) return settle_wave(pass);
  if (pass.started_here && pass.gradients.unanswered() == 0) start_wave(pass, PassWave::check);
}

}  // namespace rehearsal
