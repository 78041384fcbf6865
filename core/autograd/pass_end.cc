// How passes end: the waves, and failure.
#include "core/autograd/passes.h"
#include "core/base/check.h"
#include "core/base/short_text.h"
#include "core/base/user_code.h"
#include "core/session/session.h"

namespace rehearsal {

// ---- the waves ----------------------------------------------------------------

void Passes::start_wave(Pass& pass, PassWave wave) {
  pass.wave_parent.reset();
  if (wave == PassWave::commit) {
    // Nothing can take long or fail any more but by the loss of a worker.
    deadlines_.remove(pass.deadline);
    pass.deadline = {};
  }
  join_wave(pass, wave);
}

// Passes the wave on and does this worker's part, then reports once all others have.
void Passes::join_wave(Pass& pass, PassWave wave) {
  REHEARSAL_CHECK(pass.wave_waits.empty(), pass.name.id.epoch);
  pass.wave = wave;
  pass.wave_error.reset();
  pass.in_wave = true;
  if (wave == PassWave::commit)
    if (Status committed = commit(pass); !committed.ok()) return fail(pass, committed.error());
  const bool fast = pass.name.mode == PassMode::fast;
  if (wave == PassWave::check && fast) pass.wave_error = why_incomplete(pass);
  if (pass.wave_error && options_.mutants.on(Mutant::unused_result_hangs)) return;
  for (const WorkerId peer : pass.context->peers)
    if (peer != pass.wave_parent) pass.wave_waits.insert(peer);
  const bool believes = pass.heard_starter || !pass.context->gradients.concerned_by(pass.name);
  if (wave == PassWave::check && !believes) pass.wave_waits.insert(pass.name.starter);
  for (const WorkerId peer : pass.wave_waits)
    send(pass, peer, Message{PassFinish{pass.name, wave}});
  if (!fast && pass.walk && wave != PassWave::commit) {
    pass.next.look = wave == PassWave::check && (!pass.walk->resting() || !pass.walk->complete());
    pass.next.resume = wave == PassWave::resume;
    if (!pass.next.empty()) go_on(pass);
  }
  settle(pass);
}

void Passes::on_finish(WorkerId from, ContextRecord* context, const PassFinish& message) {
  const PassName& name = message.pass;
  const Message nothing_here{PassFinished{name, std::nullopt, false}};
  const auto found = passes_.find(name.id);
  const bool commit = message.wave == PassWave::commit;
  // This worker is asked whether it has begun the pass, too.
  const bool is_asked = name.starter == options_.self && message.wave == PassWave::check;
  // The call of a worker that is not known to take part is on its way: others tell of the wave.
  if (context != nullptr && !takes_part(from, *context)) {
    if (!is_asked || admit(from, context, name)) sessions_.send(from, nothing_here);
    return;
  }
  if (found == passes_.end() && (commit || context == nullptr) && !is_asked) {
    // It has committed already, or holds nothing of the context.
    const bool dead = context != nullptr && context->dead.contains(name.id);
    if (!dead) return sessions_.send(from, nothing_here);
  }
  if (!admit(from, context, name)) return;
  Pass* const joined = join(from, *context, name, "PassFinish.pass");
  if (joined == nullptr) return;
  Pass& pass = *joined;
  if (pass.wave == message.wave) return send(pass, from, nothing_here);
  const bool walks = pass.walk && !pass.walk->resting();
  // Its sender may have been told so by another one: it is not to blame.
  if (pass.started_here || pass.in_wave || message.wave < pass.wave ||
      (walks && message.wave == PassWave::commit))
    return fail(
        pass,
        protocol_error(from, "announced the end of a pass that goes on, by its PassFinish.wave"));
  pass.wave_parent = from;
  join_wave(pass, message.wave);
}

void Passes::on_finished(WorkerId from, const PassFinished& message) {
  const auto found = passes_.find(message.pass.id);
  if (found == passes_.end()) return strand_.mark("a report came for a pass that has failed");
  Pass& pass = found->second;
  if (pass.wave_waits.erase(from) == 0) return;
  const bool is_word = pass.wave == PassWave::check && from == pass.name.starter;
  if (is_word && !hear_starter(pass)) return;
  if (message.error && !pass.wave_error) pass.wave_error = message.error;
  pass.undecided |= message.undecided;
  settle(pass);
}

bool Passes::own_part_done(const Pass& pass) const {
  if (pass.wave == PassWave::commit) return true;
  const bool holds = pass.walk && pass.walk->held_sections() > 0;
  if (pass.wave == PassWave::resume) return pass.gradients.unanswered() == 0 && !holds;
  // In SMART mode what is held back is a reason for the next wave.
  return pass.marks.unanswered() == 0 && !(holds && pass.name.mode == PassMode::fast);
}

// REQUIRES: its walk rests.
void Passes::settle_wave(Pass& pass) {
  if (!pass.in_wave || !own_part_done(pass)) return;
  const bool commits = pass.wave == PassWave::commit;
  const bool hasty =
      pass.started_here && commits && options_.mutants.on(Mutant::backward_returns_before_commit);
  if (!pass.wave_waits.empty() && !hasty) return;
  pass.in_wave = false;
  if (pass.wave == PassWave::check && pass.name.mode == PassMode::smart && pass.walk)
    pass.undecided |= !pass.walk->complete();
  if (pass.started_here) return start_next_wave(pass);
  send(pass, *pass.wave_parent,
       Message{PassFinished{pass.name, pass.wave_error, std::exchange(pass.undecided, false)}});
  if (commits) end(pass, Unit{});
}

// All have reported to this worker, the starter.
void Passes::start_next_wave(Pass& pass) {
  if (pass.wave_error) {
    const Error why = *pass.wave_error;
    return fail(pass, why);
  }
  if (pass.wave == PassWave::commit) return end(pass, Unit{});
  if (!std::exchange(pass.undecided, false)) return start_wave(pass, PassWave::commit);
  strand_.mark("a pass waits for what may not come");
  if (options_.mutants.on(Mutant::unused_result_hangs)) return;
  start_wave(pass,
             options_.mutants.on(Mutant::pass_not_resumed) ? PassWave::commit : PassWave::resume);
}

MaybeError Passes::why_incomplete(const Pass& pass) const {
  size_t missing = 0;
  const SentMessage* first = nullptr;
  for (const auto& [id, sent] : pass.context->sent) {
    if (pass.given.contains(id) || sent.made_by == pass.name.id) continue;
    if (missing++ == 0) first = &sent;
  }
  if (missing == 0) return std::nullopt;
  strand_.mark("a send function got no gradient");
  const WorkerId peer = first->function->route().peer;
  if (const auto lost = pass.context->lost.find(peer); lost != pass.context->lost.end())
    return lost->second;
  const std::string others =
      missing == 1 ? "" : " (and " + std::to_string(missing - 1) + " more messages)";
  return Error{.kind = ErrorKind::autograd,
               .text = "no gradient came back for " + first->what + ", which '" + strand_.name() +
                       "' sent to '" + this->name(peer) + "'" + others +
                       ": the roots do not depend on it. In FAST mode every tensor that requires "
                       "gradients and crosses workers in the context must be used; SMART mode "
                       "leaves out what is not",
               .worker = strand_.name(),
               .function = "backward",
               .chain = {}};
}

Status Passes::commit(Pass& pass) {
  if (!pass.walk) return Unit{};
  if (!pass.walk->complete())
    return Error{.kind = ErrorKind::autograd,
                 .text =
                     "gradients are missing at the end of the pass: a message that announced "
                     "them went astray",
                 .worker = strand_.name(),
                 .function = "backward",
                 .chain = {}};
  return run_user_code(strand_.name(), "backward", [&] {
    pass.context->gradients.keep(pass.name, pass.walk->take_gradients(), pass.neighbours);
  });
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
  if (error.worker.empty()) error.worker = strand_.name();
  (void)remember_dead(pass.brought_by, *pass.context, pass.name.id, error);
  if (pass.wave == PassWave::commit) pass.context->gradients.take_back(pass.name.id);
  if (pass.started_here && takes_back()) pass.context->taken_back.push_back(pass.name.id.epoch);
  std::set<WorkerId> told = pass.neighbours;
  // All hear of it from here as well: the one that would pass it on may be the one that is lost.
  if (pass.started_here) told.insert(pass.context->holders.begin(), pass.context->holders.end());
  told.insert(pass.askers.begin(), pass.askers.end());
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
  if (status.ok()) pass.context->ended.insert(pass.name.id);
  strand_.trace().on_event({.kind = EventKind::pass_ended,
                            .worker = options_.self,
                            .peer = pass.name.starter,
                            .id = pass.context->id,
                            .number = pass.name.id.epoch,
                            .digest = pass.name.id.starter_incarnation.value,
                            .text = status.ok() ? std::string_view() : status.error().text});
  if (pass.brought_by) brought_.remove(*pass.brought_by);
  auto node = passes_.extract(pass.name.id);
  Pass& ended = node.mapped();
  strand_.release_later(std::move(ended.walk));
  if (!ended.next.empty()) strand_.release_later(std::make_shared<WalkTurn>(std::move(ended.next)));
  if (ended.done) ended.done(status);
  if (on_progress_) on_progress_();
}

// False: it counts for a peer that has made as many known as may be remembered.
bool Passes::remember_dead(std::optional<WorkerId> told_by, ContextRecord& context,
                           const PassId& pass, const Error& why) {
  if (context.dead.contains(pass)) return true;
  if (told_by == options_.self) told_by.reset();
  if (told_by && !told_dead_.add(*told_by, options_.limits.failed_passes)) return false;
  if (told_by) ++context.told_dead[*told_by];
  Error kept = why;
  make_brief(kept);
  context.dead.emplace(pass, std::move(kept));
  return true;
}

void Passes::on_failed(WorkerId from, ContextRecord* context, const PassFailed& message) {
  if (context == nullptr) return;
  const PassName& name = message.pass;
  if (name.id.starter_incarnation == options_.incarnation)
    return on_own_failed(from, *context, message);
  // A pass that failed elsewhere is told of by those as well with which it was exchanged.
  const bool by_starter = is_starter(from, name);
  if (!by_starter && !takes_part(from, *context) && from != context->creator) return;
  const auto found = passes_.find(name.id);
  if (found != passes_.end()) return fail(found->second, message.error);
  if (!by_starter && context->ended.contains(name.id)) return ask_starter(*context, message);
  // It may overtake the pass's first message.
  if (!remember_dead(from, *context, name.id, message.error)) {
    // Another one may have been told of it by its starter.
    if (by_starter)
      sessions_.accuse(from, {"PassFailed.pass", "is one of more than one worker may have"});
    return;
  }
  if (!takes_back()) return;
  const auto neighbours = context->gradients.take_back(name.id);
  if (!neighbours) return;
  strand_.mark("the gradients of a pass were taken back");
  for (const WorkerId worker : *neighbours)
    if (worker != options_.self && !sessions_.lost(worker))
      sessions_.send(worker, Message{message});
}

// A pass that has ended here, started elsewhere: how it ended is its starter's to say.
void Passes::ask_starter(const ContextRecord& context, const PassFailed& message) {
  const PassName& name = message.pass;
  if (!takes_back() || !context.gradients.keeps(name.id) || started_by_other_life(name)) return;
  sessions_.send(name.starter, Message{message});
}

// Somebody says, or asks, whether a pass has failed that was started here.
void Passes::on_own_failed(WorkerId from, const ContextRecord& context, const PassFailed& message) {
  const bool is_stranger = !takes_part(from, context) && from != context.creator;
  const auto found = passes_.find(message.pass.id);
  if (found != passes_.end() && !is_stranger) return fail(found->second, message.error);
  if (found != passes_.end()) {
    found->second.askers.insert(from);
    return;
  }
  // The others were told when it failed.
  const auto dead = context.dead.find(message.pass.id);
  if (dead == context.dead.end() || !is_stranger) return;
  sessions_.send(from, Message{PassFailed{message.pass, dead->second}});
}

void Passes::on_peer_fenced(WorkerId peer, const Error& why) {
  leavers_.erase(peer);
  std::vector<PassId> failed;
  for (const auto& [id, pass] : passes_)
    if (pass.name.starter == peer || pass.neighbours.contains(peer)) failed.push_back(id);
  for (const PassId& id : failed) fail(passes_.at(id), why);
  for (PeerTally* const tally : {&brought_, &told_dead_, &caused_sends_}) tally->forget(peer);
}

void Passes::end_context(const ContextRecord& context, const Error& why) {
  std::vector<PassId> failed;
  for (const auto& [id, pass] : passes_)
    if (pass.context == &context) failed.push_back(id);
  for (const PassId& id : failed) fail(passes_.at(id), why);
  for (const auto& [peer, count] : context.told_dead) told_dead_.remove(peer, count);
  for (const auto& [message, sent] : context.sent)
    if (sent.caused_by) caused_sends_.remove(*sent.caused_by);
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
  const auto listed = [this](const std::set<WorkerId>& workers) {
    std::string text;
    for (const WorkerId worker : workers)
      text += (text.empty() ? "'" : ", '") + this->name(worker) + "'";
    return text;
  };
  std::string lines;
  for (const auto& [id, pass] : passes_) {
    std::string waits;
    const auto add = [&waits](const std::string& what) {
      waits += (waits.empty() ? "" : ", ") + what;
    };
    if (pass.walk && !pass.walk->resting()) add("its walk goes on");
    if (pass.walk && pass.walk->resting() && pass.walk->closed_gates() > 0)
      add("its turn at " + std::to_string(pass.walk->closed_gates()) + " gates");
    if (pass.walk && pass.walk->resting() && pass.walk->held_sections() > 0)
      add("its turn to work on the leaves behind " + std::to_string(pass.walk->held_sections()) +
          " gates");
    if (pass.gradients.unanswered() + pass.marks.unanswered() > 0)
      add("answers to " + std::to_string(pass.gradients.unanswered()) +
          " messages with gradients and " + std::to_string(pass.marks.unanswered()) +
          " with marks, exchanged with " + listed(pass.neighbours));
    if (!pass.wave_waits.empty()) add("reports of " + listed(pass.wave_waits));
    size_t missing = 0;
    const SentMessage* first = nullptr;
    for (const auto& [message, sent] : pass.context->sent)
      if (!pass.given.contains(message) && missing++ == 0) first = &sent;
    if (missing > 0)
      add("no gradient has come for " + first->what + ", sent to '" +
          this->name(first->function->route().peer) + "'" +
          (missing == 1 ? "" : ", and " + std::to_string(missing - 1) + " more messages"));
    // observe/log/slow_passes.h finds the line by its beginning.
    lines += "backward pass " + std::to_string(id.epoch) + " of context " + to_string(id.context) +
             " by '" + this->name(pass.name.starter) +
             "': " + (waits.empty() ? "nothing of its own" : waits) + "\n";
  }
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
