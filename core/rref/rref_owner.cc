// The owner's side: creations, values, uses.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/monitor_entry.h"
#include "core/rref/rref_context.h"
#include "core/session/session.h"

namespace rehearsal {

RRefContext::Existence RRefContext::existence_of(const RRefId& id) const {
  if (owners_.contains(id)) return Existence::alive;
  if (options_.mutants.on(Mutant::unknown_id_is_to_come)) return Existence::to_come;
  if (id.owner != options_.self || id.owner_incarnation != options_.incarnation)
    return Existence::gone;
  const auto created = created_.find(id.causal.incarnation);
  if (created != created_.end()) {
    if (created->second.seen.contains(id.counter)) return Existence::gone;
    if (created->second.lost) return Existence::lost;
  }
  // All who create here have met us, and a value of our own is there before anybody hears of it.
  const bool may_come =
      is_here(id.causal.incarnation) && id.causal.incarnation != options_.incarnation;
  return may_come ? Existence::to_come : Existence::gone;
}

Error RRefContext::why_not_alive(const RRefId& id) const {
  if (existence_of(id) == Existence::lost) return *created_.at(id.causal.incarnation).lost;
  return {
      .kind = ErrorKind::rref_deleted,
      .text = "the value of " + to_string(id.causal) + " is gone: its last reference was deleted",
      .worker = strand_.name()};
}

OwnerRRef& RRefContext::add_owner(const RRefId& id) {
  REHEARSAL_CHECK(!owners_.contains(id), id);
  created_[id.causal.incarnation].seen.insert(id.counter);
  OwnerRRef& owner = owners_[id];
  trace_owner(EventKind::owner_created, id);
  return owner;
}

void RRefContext::when_created(const RRefId& id, WorkerId asker, std::string_view field,
                               UniqueFunction<void(Status)> ready) {
  switch (existence_of(id)) {
    case Existence::alive:
      return ready(Unit{});
    case Existence::to_come:
      if (MaybeError too_many = why_too_many_awaited(id, asker, field))
        return ready(std::move(*too_many));
      strand_.mark("a use waits for its reference to be created");
      to_come_[{id.causal.incarnation, id.counter}].push_back({id, asker, std::move(ready)});
      return;
    case Existence::gone:
    case Existence::lost:
      return ready(why_not_alive(id));
  }
}

void RRefContext::with_value(const RRefId& id, UniqueFunction<void(Result<HeldValue>)> done) {
  OwnerRRef& owner = owners_.at(id);
  if (owner.value) return done(*owner.value);
  owner.waiting.push_back(
      [this, id, done = std::move(done)]() mutable { done(*owners_.at(id).value); });
}

void RRefContext::complete_value(const RRefId& id, Result<HeldValue> value) {
  OwnerRRef& owner = owners_.at(id);
  REHEARSAL_CHECK(!owner.value, id);
  if (value.ok()) owner.monitor->set_streams(value.value().streams);
  owner.value.emplace(std::move(value));
  ++owner.uses;  // While those that waited run.
  std::vector<Task> waiting = std::move(owner.waiting);
  owner.waiting.clear();
  if (!owner.value->ok() && options_.mutants.on(Mutant::failed_creation_wakes_nobody))
    waiting.clear();
  for (Task& task : waiting) due_.push_back(std::move(task));
  due_.push_back([this, id] { end_use(id); });
  run_due();
}

// One after another: the error of a value is at once that of each value made of it, in a chain that
// may be as long as its creator likes.
void RRefContext::run_due() {
  if (std::exchange(runs_due_, true)) return;
  while (!due_.empty()) {
    Task task = std::move(due_.front());
    due_.pop_front();
    task();
  }
  runs_due_ = false;
}

void RRefContext::end_use(const RRefId& id) {
  if (closed_) return;
  OwnerRRef& owner = owners_.at(id);
  REHEARSAL_CHECK(owner.uses > 0, id);
  --owner.uses;
  drop_if_unused(id);
}

void RRefContext::drop_if_unused(const RRefId& id) {
  const auto found = owners_.find(id);
  if (found == owners_.end()) return;
  OwnerRRef& owner = found->second;
  const bool held = owner.handles > 0 && !options_.mutants.on(Mutant::owner_handles_keep_nothing);
  if (!owner.forks.empty() || held || owner.uses > 0) return;
  if (owner.counts_for) created_by_.remove(*owner.counts_for);
  if (options_.mutants.on(Mutant::values_end_in_place)) owner.value.reset();
  if (owner.value && owner.value->ok()) owner.value->value().drop(strand_);
  strand_.release_later(std::move(owner.monitor));
  trace_owner(EventKind::owner_dropped, id);
  owners_.erase(found);
  progressed();
}

ValueViews RRefContext::values(std::type_index type) const {
  ValueViews views;
  for (const auto& [id, owner] : owners_) {
    if (!owner.value || !owner.value->ok() || owner.value->value().type->type != type) continue;
    const bool busy = owner.monitor->held() || strand_.waits().has_entered(*owner.monitor);
    views.push_back({.id = id.causal, .value = owner.value->value().value.get(), .busy = busy});
  }
  return views;
}

// ---- serving ----------------------------------------------------------------

void RRefContext::serve(WorkerId from, Call call, MaybeError refused) {
  if (call.created) return serve_creation(from, std::move(call), std::move(refused));
  admit(from, std::move(call), std::move(refused));
}

void RRefContext::admit(WorkerId from, Call call, MaybeError refused) {
  auto arrived = std::make_shared<ArrivedCall>();
  arrived->refused = std::move(refused);
  arrived->target_known = arrived->refused || !call.target;
  if (!arrived->target_known) begin_use(from, arrived, *call.target);
  arrived->served = served_.admit(from, std::move(call), [this, arrived](Status ready) {
    arrived->confirmed = true;
    if (!ready.ok() && !arrived->refused) arrived->refused = ready.error();
    proceed(*arrived);
  });
}

void RRefContext::begin_use(WorkerId from, const std::shared_ptr<ArrivedCall>& arrived,
                            const RRefId& target) {
  when_created(target, from, "Call.target", [this, arrived, target](Status created) {
    arrived->target_known = true;
    if (created.ok()) {
      ++owners_.at(target).uses;
      arrived->use = target;
    } else if (!arrived->refused) {
      arrived->refused = created.error();
    }
    if (arrived->confirmed) proceed(*arrived);
  });
}

void RRefContext::proceed(ArrivedCall& arrived) {
  const bool runs = !arrived.concluded && !arrived.refused;
  if (runs && !arrived.target_known) return;
  if (!std::exchange(arrived.concluded, true) && !runs) refuse(arrived.served, *arrived.refused);
  if (!runs) {
    if (arrived.use) end_use(*arrived.use);
    return;
  }
  if (arrived.served->call.target) return serve_target(arrived.served);
  use_target(arrived.served, HeldValue{});
}

// Owner creation, registration of the creator's fork and the answer are one step.
void RRefContext::serve_creation(WorkerId from, Call call, MaybeError refused) {
  const RRefId id = *call.created;
  const bool here = from == options_.self;
  if (!here) {
    const bool is_senders = id.causal.incarnation == sessions_.incarnation(from);
    if (is_senders && existence_of(id) != Existence::to_come)
      return sessions_.accuse(from, {"Call.created", "was created before"});
    if (!is_senders) {
      strand_.trace().on_event({.kind = EventKind::call_served,
                                .worker = options_.self,
                                .peer = from,
                                .id = call.id,
                                .number = 1 + static_cast<uint64_t>(ErrorKind::protocol)});
      return strand_.mark("a creation came for an id that is not to come");
    }
    if (const auto too_many = why_too_many_created(from, id))
      return sessions_.accuse(from, *too_many);
    OwnerRRef& owner = add_owner(id);
    owner.uses = 1;
    owner.counts_for = from;
    owner.origin = {.function = function_name(call), .made_in = {}, .came_from = from};
    if (options_.mutants.on(Mutant::creation_in_two_steps))
      deadlines_.add(strand_.runtime().now(), [this, id, fork = call.created_fork, from] {
        register_creator(id, fork, from);
      });
    else
      register_creator(id, call.created_fork, from);
    end_awaited(id);
  }
  admit(from, std::move(call), std::move(refused));
}

// The creator gives a number once: nobody can create what was asked for by this number and another
// name, so that use is refused.
void RRefContext::end_awaited(const RRefId& created) {
  const auto entry = to_come_.find({created.causal.incarnation, created.counter});
  if (entry == to_come_.end()) return;
  std::vector<AwaitsCreation> waiting = std::move(entry->second);
  to_come_.erase(entry);
  for (AwaitsCreation& use : waiting) {
    awaited_by_.remove(use.asker);
    if (use.id == created) {
      use.ready(Unit{});
    } else {
      strand_.mark("a value was created by another name than a use waits for");
      use.ready(why_not_alive(use.id));
    }
  }
}

std::string RRefContext::function_name(const Call& call) const {
  if (call.kind == CallKind::operator_) return call.name;
  const auto& functions = caller_->registry().functions();
  return call.function < functions.size() ? functions[call.function].name : std::string();
}

void RRefContext::register_creator(const RRefId& id, const ForkId& fork, WorkerId creator) {
  register_fork(id, fork, creator);
  sessions_.send(creator, Message{ForkConfirm{fork, std::nullopt}});
}

// A creation that is refused makes an owner that holds the error.
void RRefContext::refuse(const std::shared_ptr<ServedCall>& served, const Error& why) {
  if (!served->call.created) return served_.answer_error(served, why);
  const RRefId id = *served->call.created;
  Error error = why;
  const ErrorKind kind = error.kind;
  if (error.worker.empty()) error.worker = strand_.name();
  complete_value(id, std::move(error));
  served_.forget(served, kind);
  end_use(id);
}

void RRefContext::serve_target(const std::shared_ptr<ServedCall>& served) {
  const RRefId target = *served->call.target;
  with_value(target, [this, served, target](Result<HeldValue> object) {
    if (object.ok()) return use_target(served, std::move(object));
    refuse(served, object.error());
    end_use(target);
  });
}

void RRefContext::use_target(const std::shared_ptr<ServedCall>& served, Result<HeldValue> object) {
  const Call& call = served->call;
  ServedTarget target{std::move(object).value(), nullptr};
  Task done;
  if (call.target) {
    target.monitor = owners_.at(*call.target).monitor;
    done = [this, id = *call.target] { end_use(id); };
  }
  if (call.kind == CallKind::await) target = {HeldValue::of<Unit>({}), nullptr};
  if (call.kind == CallKind::fetch || call.kind == CallKind::await)
    return served_.answer(served, std::move(target), std::move(done));
  if (call.target) {
    const Function& function = caller_->registry().functions()[call.function];
    if (function.object_type != target.object.type->type) {
      refuse(served, {.kind = ErrorKind::bad_arguments,
                      .text = "the reference's value is of another type than the method",
                      .worker = strand_.name(),
                      .function = function.name});
      return done();
    }
    if (function.is_parallel) target.monitor = nullptr;
  }
  Finisher created;
  if (call.created)
    created = [this, id = *call.created](Result<HeldValue> value) {
      if (closed_) return;
      complete_value(id, std::move(value));
      end_use(id);
    };
  served_.run(served, std::move(target), std::move(created), std::move(done));
}

// ---- local use --------------------------------------------------------------

void RRefContext::local_value(const RRefId& id, UniqueFunction<void(Result<HeldValue>)> done) {
  if (!owners_.contains(id)) return done(why_not_alive(id));
  with_value(id, std::move(done));
}

bool RRefContext::enter_monitor(const RRefId& id, Execution* execution, const WaitHandle& wait) {
  const auto owner = owners_.find(id);
  if (owner != owners_.end())
    return rehearsal::enter_monitor(owner->second.monitor, execution, wait);
  wait.end();
  return false;
}

void RRefContext::leave_monitor(const RRefId& id, Execution* execution) {
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;
  rehearsal::leave_monitor(std::shared_ptr(owner->second.monitor), execution);
}

}  // namespace rehearsal
