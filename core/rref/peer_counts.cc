// How much each peer makes the tables of references hold, and what becomes of it when it is fenced.
#include "core/rref/rref_context.h"
#include "core/session/session.h"

namespace rehearsal {

// Not in the middle of a message that is handled: the loss of a peer changes all tables.
void RRefContext::accuse_later(WorkerId peer, const Violation& violation) {
  strand_.post([this, peer, violation, incarnation = sessions_.incarnation(peer)] {
    if (!closed_ && sessions_.incarnation(peer) == incarnation) sessions_.accuse(peer, violation);
  });
}

std::optional<Violation> RRefContext::why_too_many_created(WorkerId from, const RRefId& id) {
  const IntervalSet& seen = created_[id.causal.incarnation].seen;
  gaps_peak_ = std::max(gaps_peak_, seen.gaps());
  if (seen.gaps() >= options_.limits.gaps && id.counter != seen.base())
    return Violation{"Call.created", "leaves out more values than can be on their way"};
  if (!created_by_.add(from, options_.limits.references))
    return Violation{"Call.created", "is one more value than one worker may have here"};
  return std::nullopt;
}

// A worker that asks for a value which another one is to create may have been told that it will: it
// is refused. Only its creator knows that it has created no such value.
MaybeError RRefContext::why_too_many_awaited(const RRefId& id, WorkerId asker,
                                             std::string_view field) {
  if (asker == options_.self) return std::nullopt;
  if (awaited_by_.add(asker, options_.limits.awaited_values)) return std::nullopt;
  if (id.causal.incarnation == sessions_.incarnation(asker))
    accuse_later(asker, {field, "is one of more values than it can have begun to create"});
  return Error{.kind = ErrorKind::overloaded,
               .text = "worker '" + name(asker) + "' waits for " +
                       std::to_string(options_.limits.awaited_values) +
                       " values that nobody has created yet",
               .worker = strand_.name()};
}

MaybeError RRefContext::why_too_many_given(WorkerId from, uint64_t forks) {
  if (from == options_.self || given_by_.count(from) + forks <= options_.limits.references)
    return std::nullopt;
  accuse_later(from, {"Payload.forks", "are more references than one worker may give"});
  return Error{.kind = ErrorKind::overloaded,
               .text = "worker '" + name(from) + "' has given more than " +
                       std::to_string(options_.limits.references) + " references that last",
               .worker = strand_.name()};
}

// The uses of values that a lost worker was to create, and its own uses of others.
void RRefContext::drop_awaited(WorkerId peer, Incarnation incarnation, const Error& why) {
  std::vector<AwaitsCreation> dropped;
  for (auto entry = to_come_.begin(); entry != to_come_.end();) {
    const bool is_lost = entry->first.first == incarnation &&
                         !options_.mutants.on(Mutant::lost_creator_refuses_nothing);
    std::vector<AwaitsCreation> stay;
    for (AwaitsCreation& waiting : entry->second) {
      (is_lost || waiting.asker == peer ? dropped : stay).push_back(std::move(waiting));
    }
    entry->second = std::move(stay);
    entry = entry->second.empty() ? to_come_.erase(entry) : std::next(entry);
  }
  for (AwaitsCreation& waiting : dropped) {
    awaited_by_.remove(waiting.asker);
    waiting.ready(why);
  }
}

// No call is under way anywhere, so no creation is: only a false name is waited for.
void RRefContext::refuse_awaited() {
  for (auto& [place, waiting] : std::exchange(to_come_, {}))
    for (AwaitsCreation& use : waiting) {
      awaited_by_.remove(use.asker);
      use.ready(Error{.kind = ErrorKind::rref_deleted,
                      .text = "the value of " + to_string(use.id.causal) +
                              " was not created until the group shut down",
                      .worker = strand_.name()});
    }
}

// Values that outlive a lost worker, because others refer to them, count for it no more.
void RRefContext::forget_counts(WorkerId peer) {
  for (auto& [id, owner] : owners_)
    if (owner.counts_for == peer) owner.counts_for.reset();
  for (auto& [fork, user] : users_)
    if (user.counts_for == peer) user.counts_for.reset();
  for (PeerTally* tally : {&created_by_, &held_by_, &given_by_, &awaited_by_}) tally->forget(peer);
}

// The worker that asks may have been given so many by another one: it is refused, not fenced.
MaybeError RRefContext::why_too_many_held(WorkerId holder, uint64_t more) const {
  if (holder == options_.self || held_by_.count(holder) + more <= options_.limits.references)
    return std::nullopt;
  return Error{.kind = ErrorKind::overloaded,
               .text = "worker '" + name(holder) + "' would hold more than " +
                       std::to_string(options_.limits.references) + " references of this one",
               .worker = strand_.name()};
}

std::string RRefContext::describe_awaited() const {
  if (to_come_.empty()) return {};
  const auto& [place, waiting] = *to_come_.begin();
  std::string creator = "a worker that is gone";
  for (uint32_t worker = 0; worker < options_.names.size(); ++worker)
    if (sessions_.incarnation(WorkerId{worker}) == place.first)
      creator = "'" + name(WorkerId{worker}) + "'";
  return "'" + name(waiting.front().asker) + "' waits for a value that " + creator +
         " has not created";
}

}  // namespace rehearsal
