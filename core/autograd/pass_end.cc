// How passes end: the two waves, and failure.
#include "core/autograd/passes.h"
#include "core/base/check.h"
#include "core/session/session.h"

namespace rehearsal {

// ---- the waves ----------------------------------------------------------------

void Passes::start_wave(Pass& pass, Stage stage) {
  pass.wave_parent.reset();
  if (stage == Stage::committed) {
    // Nothing can take long or fail any more but by the loss of a worker.
    deadlines_.remove(pass.deadline);
    pass.deadline = {};
  }
  join_wave(pass, stage);
}

// Does this worker's part, passes the wave on, and reports once all others have.
void Passes::join_wave(Pass& pass, Stage stage) {
  REHEARSAL_CHECK(pass.wave_waits.empty(), pass.name.id.epoch);
  pass.stage = stage;
  pass.wave_error.reset();
  if (!pass.context->lost.empty()) return fail(pass, pass.context->lost.begin()->second);
  if (stage == Stage::checked)
    pass.wave_error = why_incomplete(pass);
  else
    commit(pass);
  if (pass.wave_error && options_.mutants.on(Mutant::unused_result_hangs)) return;
  for (const WorkerId peer : pass.context->peers)
    if (peer != pass.wave_parent) pass.wave_waits.insert(peer);
  for (const WorkerId peer : pass.wave_waits)
    send(pass, peer, Message{PassFinish{pass.name, stage == Stage::committed}});
  settle_wave(pass);
}

void Passes::on_finish(WorkerId from, ContextRecord* context, const PassFinish& message) {
  const PassName& name = message.pass;
  const Message nothing_here{PassFinished{name, std::nullopt}};
  const auto found = passes_.find(name.id);
  if (found == passes_.end() && (message.commit || context == nullptr)) {
    // It has committed already, or holds nothing of the context.
    const bool dead = context != nullptr && context->dead.contains(name.id);
    if (!dead) return sessions_.send(from, nothing_here);
  }
  if (!admit(from, context, name)) return;
  const Stage stage = message.commit ? Stage::committed : Stage::checked;
  Pass& pass = pass_of(*context, name);
  pass.neighbours.insert(from);
  if (pass.stage == stage) return send(pass, from, nothing_here);
  if ((pass.walk && !pass.walk->resting()) || !pass.wave_waits.empty())
    return fail(pass, protocol_error(from, "announced the end of a pass that goes on"));
  pass.wave_parent = from;
  join_wave(pass, stage);
}

void Passes::on_finished(WorkerId from, const PassFinished& message) {
  const auto found = passes_.find(message.pass.id);
  if (found == passes_.end()) return strand_.mark("a report came for a pass that has failed");
  Pass& pass = found->second;
  if (pass.wave_waits.erase(from) == 0) return;
  if (message.error && !pass.wave_error) pass.wave_error = message.error;
  settle_wave(pass);
}

void Passes::settle_wave(Pass& pass) {
  const bool committed = pass.stage == Stage::committed;
  const bool hasty =
      pass.started_here && committed && options_.mutants.on(Mutant::backward_returns_before_commit);
  if (!pass.wave_waits.empty() && !hasty) return;
  if (!pass.started_here) {
    send(pass, *pass.wave_parent, Message{PassFinished{pass.name, pass.wave_error}});
    if (committed) end(pass, Unit{});
    return;
  }
  if (pass.wave_error) {
    const Error why = *pass.wave_error;
    return fail(pass, why);
  }
  if (committed) return end(pass, Unit{});
  start_wave(pass, Stage::committed);
}

MaybeError Passes::why_incomplete(const Pass& pass) const {
  size_t missing = 0;
  const SentMessage* first = nullptr;
  for (const auto& [id, sent] : pass.context->sent) {
    if (pass.given.contains(id)) continue;
    if (missing++ == 0) first = &sent;
  }
  if (missing == 0) return std::nullopt;
  strand_.mark("a send function got no gradient");
  const WorkerId peer = first->function->route().peer;
  const std::string others =
      missing == 1 ? "" : " (and " + std::to_string(missing - 1) + " more messages)";
  return Error{.kind = ErrorKind::autograd,
               .text = "no gradient came back for " + first->what + ", which '" + strand_.name() +
                       "' sent to '" + this->name(peer) + "'" + others +
                       ": the roots do not depend on it. Every tensor that requires gradients and "
                       "crosses workers in the context must be used",
               .worker = strand_.name(),
               .function = "backward",
               .chain = {}};
}

void Passes::commit(Pass& pass) {
  if (!pass.walk) return;
  LeafGradients added = pass.walk->take_gradients();
  LeafGradients& sums = pass.context->gradients;
  if (sums.empty()) {
    sums = std::move(added);
    return;
  }
  for (const LeafGradient& gradient : added.all()) sums.accumulate(gradient);
}

Error Passes::protocol_error(WorkerId peer, const std::string& what) const {
  return {.kind = ErrorKind::protocol,
          .text = "'" + name(peer) + "' " + what,
          .worker = name(peer),
          .function = "backward",
          .chain = {}};
}

// ---- failure ------------------------------------------------------------------

void Passes::fail(Pass& pass, const Error& why) {
  Error error = why;
  if (error.function.empty()) error.function = "backward";
  pass.context->dead.emplace(pass.name.id, error);
  std::set<WorkerId> told = pass.neighbours;
  if (options_.mutants.on(Mutant::failure_told_upwards_only)) told.clear();
  if (!pass.started_here) told.insert(pass.name.starter);
  if (options_.mutants.on(Mutant::failure_not_told)) told.clear();
  for (const WorkerId worker : told)
    if (worker != options_.self && !sessions_.lost(worker))
      sessions_.send(worker, Message{PassFailed{pass.name, error}});
  end(pass, error);
}

void Passes::end(Pass& pass, const Status& status) {
  deadlines_.remove(pass.deadline);
  strand_.trace().on_event({.kind = EventKind::pass_ended,
                            .worker = options_.self,
                            .peer = pass.name.starter,
                            .id = pass.context->id,
                            .number = pass.name.id.epoch,
                            .text = status.ok() ? std::string_view() : status.error().text});
  auto node = passes_.extract(pass.name.id);
  Pass& ended = node.mapped();
  strand_.release_later(std::move(ended.walk));
  if (!ended.arrived.empty())
    strand_.release_later(std::make_shared<std::vector<Delivery>>(std::move(ended.arrived)));
  if (ended.done) ended.done(status);
  if (on_progress_) on_progress_();
}

void Passes::on_failed(ContextRecord* context, const PassFailed& message) {
  if (context == nullptr) return;
  const auto found = passes_.find(message.pass.id);
  if (found != passes_.end()) return fail(found->second, message.error);
  // It may overtake the pass's first message.
  context->dead.emplace(message.pass.id, message.error);
}

void Passes::on_peer_fenced(WorkerId peer, const Error& why) {
  leavers_.erase(peer);
  std::vector<PassId> failed;
  for (const auto& [id, pass] : passes_)
    if (pass.name.starter == peer || pass.neighbours.contains(peer)) failed.push_back(id);
  for (const PassId& id : failed) fail(passes_.at(id), why);
}

void Passes::end_context(const ContextRecord& context, const Error& why) {
  std::vector<PassId> failed;
  for (const auto& [id, pass] : passes_)
    if (pass.context == &context) failed.push_back(id);
  for (const PassId& id : failed) fail(passes_.at(id), why);
}

void Passes::clear(const Error& why) {
  std::map<PassId, Pass> passes = std::move(passes_);
  passes_.clear();
  turns_.clear();
  running_walks_ = 0;
  for (auto& [id, pass] : passes) {
    strand_.release_later(std::move(pass.walk));
    if (pass.done) pass.done(why);
  }
}

std::string Passes::describe() const {
  std::string lines;
  for (const auto& [id, pass] : passes_)
    lines += "backward pass " + std::to_string(id.epoch) + " of context " + to_string(id.context) +
             ": " + std::to_string(pass.unanswered) + " gradient messages unanswered, " +
             std::to_string(pass.wave_waits.size()) + " reports awaited\n";
  return lines;
}

std::string Passes::check_invariants() const {
  std::string broken;
  for (const auto& [id, pass] : passes_) {
    if (pass.context->dead.contains(id) && !options_.mutants.on(Mutant::forget_dead_epochs))
      broken += "a pass of context " + to_string(id.context) + " goes on although it has failed\n";
    for (const CausalId& message : pass.given)
      if (!pass.context->sent.contains(message))
        broken += "gradients were taken for message " + to_string(message) + ", which context " +
                  to_string(id.context) + " did not send\n";
  }
  return broken;
}

}  // namespace rehearsal
