// The fork of a reference, in protocol order: the sender prepares it, the receiver adopts it, asks
// the owner, is answered, tells its parent, and at last deletes it. Four tables: pending_children_
// at the sender, users_ at the receiver, owners_ (their forks) and to_come_ at the owner.
#include <unordered_set>

#include "core/base/check.h"
#include "core/rref/rref_context.h"
#include "core/session/session.h"

namespace rehearsal {

// ---- sender -----------------------------------------------------------------

Status RRefContext::prepare_forks(WorkerId to, const CausalId& call, uint64_t which,
                                  Payload& payload) {
  if (payload.handles.empty()) return Unit{};
  for (const auto& handle : payload.handles)
    if (MaybeError error = why_unusable(*handle)) return *error;
  if (MaybeError too_many = why_too_many_held(to, payload.handles.size())) return *too_many;
  const Hash128 path = mix(call.place(), which);
  uint64_t ordinal = 0;
  const ForkId first{{options_.incarnation, path, 0}};
  const auto made = pending_children_.lower_bound(first);
  if (made != pending_children_.end() && made->first.incarnation == first.incarnation &&
      made->first.path == path) {
    return Error{.kind = ErrorKind::protocol,
                 .text = "references cannot be passed on for a call whose id was used before",
                 .worker = strand_.name()};
  }
  for (const auto& handle : payload.handles) {
    const ForkId fork{{options_.incarnation, path, ordinal++}};
    if (handle->is_owner()) {
      // Registered here and now; confirmed by adoption.
      if (options_.mutants.on(Mutant::owner_fork_registered_late))
        deadlines_.add(strand_.runtime().now() + std::chrono::milliseconds(5),
                       [this, id = handle->id(), fork, to] { register_fork(id, fork, to); });
      else
        register_fork(handle->id(), fork, to);
    } else {
      const bool fresh = pending_children_.emplace(fork, PendingChild{to, *handle->fork()}).second;
      REHEARSAL_CHECK(fresh, fork);
      if (to != options_.self) (void)held_by_.add(to, options_.limits.references);
      ++users_.at(*handle->fork()).children;  // G2
    }
    payload.forks.push_back({handle->id(), fork, handle->is_owner()});
  }
  // The message keeps no handle: its destructor would run on the strand.
  for (auto& handle : payload.handles) strand_.release_later(std::move(handle));
  payload.handles.clear();
  return Unit{};
}

void RRefContext::undo_forks(WorkerId to, const std::vector<Fork>& forks) {
  if (options_.mutants.on(Mutant::unsent_forks_stay)) return;
  for (const Fork& fork : forks) {
    if (fork.owner_is_parent) {
      const auto owner = owners_.find(fork.rref);
      if (owner == owners_.end() || owner->second.forks.erase({fork.id, to}) == 0) continue;
      held_by_.remove(to);
      trace_fork(EventKind::fork_deleted, fork.id, fork.rref, to);
      drop_if_unused(fork.rref);
    } else {
      settle_child(fork.id);
    }
  }
}

// ---- receiver ---------------------------------------------------------------

void RRefContext::adopt_forks(WorkerId from, Payload& payload, UniqueFunction<void(Status)> ready) {
  if (payload.forks.empty()) return ready(Unit{});
  MaybeError refused = why_too_many_given(from, payload.forks.size());
  if (!refused) {
    refused = why_impossible(payload.forks);
    if (refused) strand_.mark("forks arrived that cannot be");
  }
  if (refused) {
    give_back(from, payload.forks);
    return ready(*refused);
  }
  struct Gate {
    size_t missing;
    UniqueFunction<void(Status)> ready;
  };
  auto gate = std::make_shared<Gate>(Gate{payload.forks.size(), std::move(ready)});
  auto arrived = [gate](Status status) {
    if (!gate->ready) return;
    if (status.ok() && --gate->missing > 0) return;
    auto ready = std::move(gate->ready);
    gate->ready = nullptr;
    ready(std::move(status));
  };
  std::vector<Fork> forks = std::move(payload.forks);
  payload.forks.clear();
  for (const Fork& fork : forks) {
    const bool is_owner = fork.rref.owner == options_.self;
    payload.handles.push_back(
        make_handle(fork.rref, is_owner ? std::nullopt : std::optional<ForkId>(fork.id)));
    if (!is_owner) adopt_as_user(from, fork);
  }
  const bool ungated = options_.mutants.on(Mutant::no_confirmation_gate);
  const std::vector<std::shared_ptr<RRefHandle>> handles = payload.handles;
  for (size_t i = 0; i < forks.size(); ++i) {
    const Fork& fork = forks[i];
    if (fork.rref.owner == options_.self)
      adopt_as_owner(from, fork, handles[i], arrived);
    else if (ungated)
      arrived(Unit{});
    else
      when_confirmed(fork.id, arrived);
  }
}

// Of a message that is refused nothing is adopted. Its sender may be honest, and driven by a mad
// worker that has made it do the same thing twice: it hears so, or it would keep for ever what it
// has passed on.
void RRefContext::give_back(WorkerId from, const std::vector<Fork>& forks) {
  const Incarnation theirs = sessions_.incarnation(from);
  for (const Fork& fork : forks) {
    const bool is_theirs = fork.rref.owner == from && fork.rref.owner_incarnation == theirs;
    if (fork.id.incarnation != theirs) continue;
    if (!fork.owner_is_parent)
      sessions_.send(from, Message{ChildAccept{fork.id}});
    else if (is_theirs && !users_.contains(fork.id))
      sessions_.send(from, Message{UserDelete{fork.rref, fork.id}});
  }
}

// Why an honest peer never sends these forks: an owner does not exist, a fork comes for the second
// time, or a value is said to be created here and was not.
MaybeError RRefContext::why_impossible(const std::vector<Fork>& forks) const {
  std::unordered_set<CausalId, CausalIdHash> seen;
  for (const Fork& fork : forks) {
    const bool again = !seen.insert(fork.id).second || users_.contains(fork.id);
    if (again || fork.rref.owner.value >= options_.names.size())
      return Error{.kind = ErrorKind::protocol,
                   .text = "a reference came twice, or of a worker that does not exist",
                   .worker = strand_.name()};
    if (is_ours_and_not_created(fork.rref))
      return Error{.kind = ErrorKind::protocol,
                   .text = "a reference came to a value that this worker has not created",
                   .worker = strand_.name()};
  }
  return std::nullopt;
}

// Its owner would wait for us to create it, and the fork for the owner.
bool RRefContext::is_ours_and_not_created(const RRefId& id) const {
  if (id.causal.incarnation != options_.incarnation || id.owner == options_.self ||
      sessions_.incarnation(id.owner) != id.owner_incarnation)
    return false;
  const auto next = next_counters_.find(id.owner);
  const bool any = next != next_counters_.end() && next->second.first == id.owner_incarnation;
  return id.counter >= (any ? next->second.second : 0);
}

void RRefContext::adopt_as_user(WorkerId from, const Fork& fork) {
  UserRRef user{.id = fork.rref, .parent = {}, .error = {}, .waiting = {}};
  user.origin.came_from = from;
  if (from != options_.self && given_by_.add(from, options_.limits.references))
    user.counts_for = from;
  if (fork.owner_is_parent) {
    user.state = UserState::confirmed;
    user.was_confirmed = true;
    return add_user(fork.id, std::move(user));
  }
  user.parent = from;
  add_user(fork.id, std::move(user));
  if (options_.mutants.on(Mutant::accept_on_adoption)) answer_parent(fork.id);
  const MaybeError& lost = sessions_.lost(fork.rref.owner);
  if (lost || sessions_.incarnation(fork.rref.owner) != fork.rref.owner_incarnation) {
    strand_.mark("a fork arrived whose owner is lost");
    return settle_user(fork.id, UserState::refused,
                       lost ? *lost
                            : Error{.kind = ErrorKind::peer_lost,
                                    .text = "the reference is owned by another life of '" +
                                            name(fork.rref.owner) + "'",
                                    .worker = name(fork.rref.owner)});
  }
  sessions_.send(fork.rref.owner, Message{ForkRequest{fork.rref, fork.id}});
}

// The handle is kept until it is counted, so that its release cannot come before.
void RRefContext::adopt_as_owner(WorkerId from, const Fork& fork,
                                 std::shared_ptr<RRefHandle> handle,
                                 UniqueFunction<void(Status)> ready) {
  auto adopt = [this, from, given_by = sessions_.incarnation(from), fork,
                handle = std::move(handle), ready = std::move(ready)](Status created) mutable {
    if (created.ok()) {
      OwnerRRef& owner = owners_.at(fork.rref);
      ++owner.handles;
      if (fork.owner_is_parent && owner.forks.erase({fork.id, options_.self}) > 0)
        trace_fork(EventKind::fork_deleted, fork.id, fork.rref);
    }
    if (!fork.owner_is_parent && !sessions_.lost(from) && sessions_.incarnation(from) == given_by)
      sessions_.send(from, Message{ChildAccept{fork.id}});
    ready(std::move(created));
  };
  when_created(fork.rref, from, "Payload.forks", std::move(adopt));
}

// ---- owner ------------------------------------------------------------------

void RRefContext::register_fork(const RRefId& id, const CausalId& fork, WorkerId holder) {
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;  // Only where a rule is left out.
  const bool fresh = owner->second.forks.emplace(fork, holder).second;
  if (fresh && holder != options_.self && !held_by_.add(holder, options_.limits.references))
    accuse_later(holder, {"Call.created_fork", "is one more than one worker may hold"});
  trace_fork(EventKind::fork_registered, fork, id, holder);
}

void RRefContext::on_fork_request(WorkerId from, const ForkRequest& request) {
  const Incarnation asked_by = sessions_.incarnation(from);
  when_created(request.rref, from, "ForkRequest.rref",
               [this, from, asked_by, request](Status created) {
                 if (closed_ || sessions_.lost(from) || sessions_.incarnation(from) != asked_by)
                   return;
                 if (!created.ok() && !options_.mutants.on(Mutant::confirm_never_refuses)) {
                   strand_.mark("a fork is refused");
                   trace_fork(EventKind::fork_refused, request.fork, request.rref, from);
                   sessions_.send(from, Message{ForkConfirm{request.fork, created.error()}});
                   return;
                 }
                 MaybeError too_many = why_too_many_held(from, 1);
                 if (!too_many) register_fork(request.rref, request.fork, from);
                 sessions_.send(from, Message{ForkConfirm{request.fork, std::move(too_many)}});
               });
}

// ---- receiver, answered -----------------------------------------------------

void RRefContext::on_fork_confirm(WorkerId from, const ForkConfirm& confirm) {
  const auto user = users_.find(confirm.fork);
  if (user != users_.end() && user->second.id.owner != from)
    return sessions_.accuse(from, {"ForkConfirm.fork", "is of a value of another owner"});
  if (user == users_.end() || user->second.state != UserState::pending)
    return strand_.mark("an answer came for a fork that is settled");
  const bool refused = confirm.error.has_value();
  settle_user(confirm.fork, refused ? UserState::refused : UserState::confirmed, confirm.error);
}

void RRefContext::settle_user(const CausalId& fork, UserState state, MaybeError error) {
  UserRRef& user = users_.at(fork);
  user.state = state;
  if (state == UserState::confirmed) user.was_confirmed = true;
  if (error && !user.error) user.error = std::move(error);
  deadlines_.remove(user.deadline);
  strand_.release_later(std::move(user.target));
  if (state != UserState::refused || !options_.mutants.on(Mutant::refused_child_accepts_not))
    answer_parent(fork);
  std::vector<Task> waiting = std::move(user.waiting);
  user.waiting.clear();
  for (Task& task : waiting) task();
  delete_if_unused(fork);
  progressed();
}

// After an answer of either kind, so that the parent is released.
void RRefContext::answer_parent(const CausalId& fork) {
  UserRRef& user = users_.at(fork);
  if (!user.parent) return;
  const WorkerId parent = *user.parent;
  user.parent.reset();
  if (!sessions_.lost(parent)) sessions_.send(parent, Message{ChildAccept{ForkId{fork}}});
}

// ---- sender, released -------------------------------------------------------

void RRefContext::on_child_accept(WorkerId from, const ChildAccept& accept) {
  const auto child = pending_children_.find(accept.fork);
  if (child != pending_children_.end() && child->second.holder != from)
    return sessions_.accuse(from, {"ChildAccept.fork", "was given to another worker"});
  settle_child(accept.fork);
}

void RRefContext::settle_child(const CausalId& fork) {
  const auto child = pending_children_.find(fork);
  if (child == pending_children_.end())
    return strand_.mark("an acceptance came for a child that is settled");
  const CausalId parent = child->second.parent;
  held_by_.remove(child->second.holder);
  pending_children_.erase(child);
  UserRRef& user = users_.at(parent);
  REHEARSAL_CHECK(user.children > 0, parent);
  --user.children;
  delete_if_unused(parent);
  progressed();
}

// ---- receiver, done ---------------------------------------------------------

void RRefContext::delete_if_unused(const CausalId& fork) {
  const auto found = users_.find(fork);
  if (found == users_.end()) return;
  UserRRef& user = found->second;
  if (!user.released || user.children > 0) return;
  // The delete leaves only when the registration has been answered, so it overtakes nothing.
  if (user.state == UserState::pending && !options_.mutants.on(Mutant::delete_before_answer))
    return;
  if (user.state != UserState::refused)
    sessions_.send(user.id.owner, Message{UserDelete{user.id, ForkId{fork}}});  // G1
  if (user.counts_for) given_by_.remove(*user.counts_for);
  trace_fork(EventKind::user_deleted, fork, user.id, user.id.owner);
  users_.erase(found);
  progressed();
}

// ---- owner, told ------------------------------------------------------------

void RRefContext::on_user_delete(WorkerId from, const UserDelete& user_delete) {
  const auto owner = owners_.find(user_delete.rref);
  if (owner == owners_.end() || owner->second.forks.erase({user_delete.fork, from}) == 0)
    return strand_.mark("a delete came for a fork that is not registered");
  trace_fork(EventKind::fork_deleted, user_delete.fork, user_delete.rref, from);
  held_by_.remove(from);
  drop_if_unused(user_delete.rref);
}

// ---- a peer is lost ---------------------------------------------------------

void RRefContext::on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) {
  CreatedIds& created = created_[incarnation];
  created.lost = why;
  created.seen.forget_above();  // They are lost, like those that have not come.
  drop_awaited(peer, incarnation, why);

  std::vector<RRefId> touched;
  for (auto& [id, owner] : owners_) {
    const size_t erased = std::erase_if(owner.forks, [&](const auto& fork) {
      if (fork.second != peer) return false;
      trace_fork(EventKind::fork_deleted, fork.first, id, peer);
      return true;
    });
    if (erased > 0) touched.push_back(id);
  }
  for (const RRefId& id : touched) drop_if_unused(id);

  std::vector<CausalId> children;
  for (const auto& [fork, child] : pending_children_)
    if (child.holder == peer && !options_.mutants.on(Mutant::pins_survive_fencing))
      children.push_back(fork);
  for (const CausalId& fork : children) settle_child(fork);

  std::vector<CausalId> owned;
  for (auto& [fork, user] : users_) {
    if (user.parent == peer) user.parent.reset();
    const bool stays =
        user.state == UserState::pending && options_.mutants.on(Mutant::lost_owner_leaves_pending);
    if (user.id.owner == peer && user.id.owner_incarnation == incarnation && !stays)
      owned.push_back(fork);
  }
  for (const CausalId& fork : owned)
    if (users_.contains(fork)) settle_user(fork, UserState::refused, why);
  forget_counts(peer);
}

}  // namespace rehearsal
