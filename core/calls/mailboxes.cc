#include "core/calls/mailboxes.h"

#include <algorithm>
#include <utility>

#include "core/session/session.h"

namespace rehearsal {

Error Mailboxes::error(ErrorKind kind, std::string text) const {
  return {.kind = kind, .text = std::move(text), .worker = strand_.name()};
}

Error Mailboxes::mismatch(WorkerId from, const std::string& theirs, const std::string& ours) const {
  return error(ErrorKind::bad_arguments,
               "the members of a process group do not do the same: worker '" +
                   options_.names[from.value] + "' is at " + theirs + ", worker '" +
                   strand_.name() + "' at " + ours);
}

// ---- groups -----------------------------------------------------------------------

MaybeError Mailboxes::why_lost(const Member& member) const {
  if (member.worker == options_.self) return std::nullopt;
  const std::string& name = options_.names[member.worker.value];
  if (sessions_.incarnation(member.worker) != member.incarnation)
    return Error{.kind = ErrorKind::peer_lost,
                 .text = "worker '" + name + "' has come back in a new life: make the group again",
                 .worker = name};
  return sessions_.lost(member.worker);
}

bool Mailboxes::is_member(WorkerId worker, const std::vector<Member>& members) {
  return std::any_of(members.begin(), members.end(),
                     [worker](const Member& member) { return member.worker == worker; });
}

const Mailboxes::Ended* Mailboxes::end_of(const GroupName& name) const {
  const auto ended = ended_.find(name);
  return ended == ended_.end() ? nullptr : &ended->second;
}

MaybeError Mailboxes::take_told(const GroupName& name, const std::vector<Member>& members) {
  MaybeError why;
  for (const Member& member : members) {
    const auto told = told_.find(member.worker);
    if (told == told_.end()) continue;
    std::erase_if(told->second, [&](std::pair<GroupName, Error>& one) {
      if (one.first != name) return false;
      if (!why) why = std::move(one.second);
      return true;
    });
  }
  return why;
}

// By a name of another's life a member could take that one's names away, and by one that is open it
// could end the process.
MaybeError Mailboxes::why_misnamed(const GroupName& name,
                                   const std::vector<Member>& members) const {
  const Member& first = *std::min_element(
      members.begin(), members.end(),
      [](const Member& one, const Member& other) { return one.worker < other.worker; });
  if (first.worker != options_.self && sessions_.incarnation(first.worker) != first.incarnation)
    return why_lost(first);
  const bool is_open = groups_.contains(name);
  if (name.founder == first.incarnation.value && !is_open) return std::nullopt;
  return Error{.kind = ErrorKind::protocol,
               .text = is_open ? "it has named a process group like one that is open"
                               : "it has named a process group by a life that is not its own",
               .worker = options_.names[first.worker.value]};
}

MaybeError Mailboxes::open(const GroupName& name, std::vector<Member> members) {
  if (MaybeError misnamed = why_misnamed(name, members)) return misnamed;
  Group& group = groups_[name];
  group.members = std::move(members);
  group.failed = take_told(name, group.members);
  if (const Ended* const ended = end_of(name)) group.failed = ended->why;
  group.told = group.failed.has_value();
  for (const Member& member : group.members)
    if (MaybeError lost = why_lost(member); lost && !group.failed) group.failed = std::move(lost);
  auto early = early_.extract(name);
  if (early.empty()) return std::nullopt;
  for (auto& [slot, arrived] : early.mapped()) accept(name, group, std::move(arrived));
  return std::nullopt;
}

void Mailboxes::note_ended(const GroupName& name, Ended ended) {
  if (ended_.insert_or_assign(name, std::move(ended)).second) ended_order_.push_back(name);
  if (ended_order_.size() <= kEndedMax) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

void Mailboxes::close(const GroupName& name) {
  auto closed = groups_.extract(name);
  if (closed.empty()) return;
  REHEARSAL_CHECK(closed.mapped().running.empty());
  const Error why = error(ErrorKind::cancelled,
                          "worker '" + strand_.name() + "' has let go of the process group");
  note_ended(name, {why, closed.mapped().begun});
  for (auto& [slot, arrived] : closed.mapped().arrived) arrived.taken->complete(why);
  strand_.release_later(std::make_shared<Parcels>(std::move(closed.mapped().arrived)));
}

Error Mailboxes::fail(const GroupName& name, const Error& why) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return why;
  Group& group = found->second;
  if (group.failed) return *group.failed;
  group.failed = why;
  Parcels arrived = std::exchange(group.arrived, {});
  for (auto& [slot, parcel] : arrived) parcel.taken->complete(why);
  strand_.release_later(std::make_shared<Parcels>(std::move(arrived)));
  for (auto& [number, running] : group.running) {
    for (const auto& [call, to] : std::exchange(running.untaken, {}))
      static_cast<void>(running.calls->cancel(call));
    deadlines_.remove(std::exchange(running.deadline, {}));
    deadlines_.remove(std::exchange(running.patience, {}));
    end_wait(running, why);
  }
  return why;
}

bool Mailboxes::take_telling(const GroupName& name) {
  const auto found = groups_.find(name);
  return found != groups_.end() && found->second.failed && !std::exchange(found->second.told, true);
}

void Mailboxes::note_told(WorkerId from, const GroupName& name, const Error& why) {
  if (ended_.contains(name)) return;
  Told& told = told_[from];
  const auto is_known = [&name](const auto& one) { return one.first == name; };
  if (std::any_of(told.begin(), told.end(), is_known)) return;
  told.emplace_back(name, why);
  if (told.size() > kToldMax) told.pop_front();
}

// A group that is not open yet may still be made here: then it has failed, if a member says so.
void Mailboxes::abandon(WorkerId from, const GroupName& name, const Error& why) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return note_told(from, name, why);
  if (!is_member(from, found->second.members)) return;
  found->second.told = true;
  fail(name, why);
}

void Mailboxes::on_peer_fenced(WorkerId peer, const Error& why) {
  told_.erase(peer);
  std::vector<GroupName> names;
  for (const auto& [name, group] : groups_)
    for (const Member& member : group.members)
      if (member.worker == peer && !group.failed) names.push_back(name);
  for (const GroupName& name : names) fail(name, why);
}

void Mailboxes::clear() {
  auto parcels = std::make_shared<std::vector<Arrived>>();
  for (auto& [name, group] : groups_)
    for (auto& [slot, arrived] : group.arrived) parcels->push_back(std::move(arrived));
  for (auto& [name, early] : early_)
    for (auto& [slot, arrived] : early) parcels->push_back(std::move(arrived));
  groups_.clear();
  early_.clear();
  if (!parcels->empty()) strand_.release_later(std::move(parcels));
}

// ---- operations of this member ----------------------------------------------------

Mailboxes::Running* Mailboxes::find(const GroupName& name, uint64_t operation) {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return nullptr;
  const auto running = group->second.running.find(operation);
  return running == group->second.running.end() ? nullptr : &running->second;
}

uint64_t Mailboxes::begin(const GroupName& name, Beginning beginning, CallPort& calls) {
  const uint64_t operation = next_operation_++;
  Group& group = groups_.at(name);
  Running& running = group.running[operation];
  running.beginning = std::move(beginning);
  running.calls = &calls;
  if (group.failed) return operation;
  set_timers(name, operation, running);
  if (running.beginning.between_two) return operation;
  group.begun = std::max(group.begun, running.beginning.number + 1);
  const auto first = group.arrived.lower_bound({.number = running.beginning.number});
  if (first == group.arrived.end() || first->first.between_two) return operation;
  const Arrived& arrived = first->second;
  if (arrived.parcel.slot.number == running.beginning.number &&
      arrived.parcel.operation != running.beginning.text)
    fail(name, mismatch(arrived.from, arrived.parcel.operation, running.beginning.text));
  return operation;
}

void Mailboxes::set_timers(const GroupName& name, uint64_t operation, Running& running) {
  if (running.beginning.deadline)
    running.deadline = deadlines_.add(*running.beginning.deadline, [this, name, operation] {
      find(name, operation)->deadline = {};
      time_out(name, operation);
    });
  if (running.beginning.patience)
    running.patience = deadlines_.add(*running.beginning.patience, [this, name, operation] {
      Running& late = *find(name, operation);
      late.patience = {};
      std::exchange(late.beginning.ask, nullptr)();
    });
}

void Mailboxes::end(const GroupName& name, uint64_t operation) {
  Running* const running = find(name, operation);
  if (running == nullptr) return;
  deadlines_.remove(running->deadline);
  deadlines_.remove(running->patience);
  for (const auto& [call, to] : std::exchange(running->untaken, {}))
    static_cast<void>(running->calls->cancel(call));
  groups_.at(name).running.erase(operation);
}

void Mailboxes::time_out(const GroupName& name, uint64_t operation) {
  const Group& group = groups_.at(name);
  const Running& running = group.running.at(operation);
  std::vector<uint32_t> ranks;
  for (const auto& [call, to] : running.untaken) ranks.push_back(to);
  if (running.wanted) ranks.push_back(running.wanted->source);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string missing;
  for (const uint32_t rank : ranks)
    missing += " '" + options_.names[group.members[rank].worker.value] + "'";
  const bool is_carried = running.waits_for >= WaitsFor::turn;
  if (running.wait && is_carried) missing += " what carries its tensors";
  std::string text = "its time is up; worker '" + strand_.name() + "' waits for:" + missing;
  for (const WorkerId worker : running.absent)
    text += ", '" + options_.names[worker.value] + "' had not come when it was asked";
  fail(name, error(ErrorKind::timeout, std::move(text)));
}

void Mailboxes::sent(const GroupName& name, uint64_t operation, const CallId& call, uint32_t to) {
  Running& running = *find(name, operation);
  if (running.taken_early.erase(call) > 0) return;
  if (groups_.at(name).failed)
    static_cast<void>(running.calls->cancel(call));
  else
    running.untaken.emplace(call, to);
}

void Mailboxes::answered(const GroupName& name, uint64_t operation, const CallId& call,
                         const MaybeError& error) {
  Running* const running = find(name, operation);
  if (running == nullptr) return;
  if (running->untaken.erase(call) == 0) running->taken_early.emplace(call, 0);
  if (error) {
    fail(name, *error);
  } else if (running->waits_for == WaitsFor::taken && running->untaken.empty()) {
    end_wait(*running, std::nullopt);
  }
}

void Mailboxes::end_wait(Running& running, const MaybeError& error,
                         std::vector<at::Tensor> tensors) {
  if (!running.wait) return;
  const WaitHandle wait = *std::exchange(running.wait, std::nullopt);
  running.wanted.reset();
  if (!wait.lasts()) return;
  *running.outcome = {error, std::move(tensors)};
  wait.end();
}

void Mailboxes::begin_wait(const GroupName& name, Running& running, WaitsFor what,
                           const WaitHandle& wait, Outcome& outcome, bool holds) {
  running.wait = wait;
  running.waits_for = what;
  running.outcome = &outcome;
  const MaybeError& failed = groups_.at(name).failed;
  if (failed || holds) end_wait(running, failed);
}

void Mailboxes::await_taken(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                            Outcome& outcome) {
  Running& running = *find(name, operation);
  begin_wait(name, running, WaitsFor::taken, wait, outcome, running.untaken.empty());
}

// ---- what is carried --------------------------------------------------------------

void Mailboxes::await_turn(const GroupName& name, uint64_t operation, uint64_t turn,
                           const WaitHandle& wait, Outcome& outcome) {
  Running& running = *find(name, operation);
  running.turn = turn;
  begin_wait(name, running, WaitsFor::turn, wait, outcome, groups_.at(name).turn == turn);
}

void Mailboxes::await_carried(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                              Outcome& outcome) {
  Running& running = *find(name, operation);
  begin_wait(name, running, WaitsFor::carrier, wait, outcome, running.carried);
}

void Mailboxes::await_failure(const GroupName& name, uint64_t operation, const WaitHandle& wait,
                              Outcome& outcome) {
  begin_wait(name, *find(name, operation), WaitsFor::failure, wait, outcome, false);
}

void Mailboxes::pass_turn(const GroupName& name) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return;
  Group& group = found->second;
  ++group.turn;
  for (auto& [number, running] : group.running)
    if (running.waits_for == WaitsFor::turn && running.turn == group.turn)
      end_wait(running, std::nullopt);
}

void Mailboxes::carried(const GroupName& name, uint64_t operation) {
  Running* const running = find(name, operation);
  if (running == nullptr) return;
  running->carried = true;
  if (running->waits_for == WaitsFor::carrier) end_wait(*running, std::nullopt);
}

// ---- parcels ----------------------------------------------------------------------

void Mailboxes::receive(const GroupName& name, uint64_t operation, const ParcelSlot& slot,
                        const WaitHandle& wait, Outcome& outcome) {
  Group& group = groups_.at(name);
  Running& running = group.running.at(operation);
  running.wait = wait;
  running.waits_for = WaitsFor::parcel;
  running.wanted = slot;
  running.outcome = &outcome;
  if (group.failed) return end_wait(running, group.failed);
  auto arrived = group.arrived.extract(slot);
  if (!arrived.empty()) accept(name, group, std::move(arrived.mapped()));
}

// ---- calls of other members -------------------------------------------------------

void Mailboxes::deliver(WorkerId from, Parcel parcel, Execution& asker,
                        const std::shared_ptr<FutureState<Unit>>& taken) {
  if (asker.given_up) return;
  const GroupName name = parcel.group;
  const ParcelSlot slot = parcel.slot;
  Arrived arrived{std::move(parcel), from, next_arrival_++, taken};
  asker.when_given_up.push_back(
      [this, lives = std::weak_ptr(lives_), name, slot, number = arrived.number] {
        if (!lives.expired()) forget(name, slot, number);
      });
  if (const auto group = groups_.find(name); group != groups_.end())
    return accept(name, group->second, std::move(arrived));
  if (const Ended* const ended = end_of(name)) return taken->complete(ended->why);
  if (!early_[name].emplace(slot, std::move(arrived)).second)
    taken->complete(error(ErrorKind::bad_arguments, "two parcels for one place"));
}

const Mailboxes::Running* Mailboxes::other_than(const Group& group, const Parcel& parcel) {
  for (const auto& [number, running] : group.running) {
    const bool is_meant = running.wanted == parcel.slot ||
                          (!parcel.slot.between_two && !running.beginning.between_two &&
                           running.beginning.number == parcel.slot.number);
    if (is_meant && running.beginning.text != parcel.operation) return &running;
  }
  return nullptr;
}

// Takes the parcel if it is wanted, else keeps it.
void Mailboxes::accept(const GroupName& name, Group& group, Arrived arrived) {
  if (group.failed) return arrived.taken->complete(*group.failed);
  const ParcelSlot& slot = arrived.parcel.slot;
  const bool is_member =
      slot.source < group.members.size() && group.members[slot.source].worker == arrived.from;
  if (!is_member || group.arrived.contains(slot))
    return arrived.taken->complete(
        error(ErrorKind::bad_arguments, "no parcel that is wanted of this worker"));
  if (const Running* other = other_than(group, arrived.parcel)) {
    const Error why = mismatch(arrived.from, arrived.parcel.operation, other->beginning.text);
    fail(name, why);
    return arrived.taken->complete(why);
  }
  for (auto& [number, running] : group.running) {
    if (running.wanted != slot) continue;
    end_wait(running, std::nullopt, std::move(arrived.parcel.tensors));
    return arrived.taken->complete(Unit{});
  }
  group.arrived.emplace(slot, std::move(arrived));
}

Result<Mailboxes::Progress> Mailboxes::compare(WorkerId from, const GroupName& name,
                                               uint64_t number, const std::string& text) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) {
    const Ended* const ended = end_of(name);
    if (ended == nullptr) return Progress::before;
    if (number < ended->begun) return Progress::there;
    return ended->why;
  }
  const Group& group = found->second;
  if (!is_member(from, group.members))
    return error(ErrorKind::bad_arguments, "a process group of which the asker is no member");
  if (group.failed) return *group.failed;
  const Parcel parcel{.group = name, .slot = {.number = number}, .operation = text, .tensors = {}};
  if (const Running* other = other_than(group, parcel))
    return fail(name, mismatch(from, text, other->beginning.text));
  return number < group.begun ? Progress::there : Progress::before;
}

void Mailboxes::note_absent(const GroupName& name, uint64_t operation, WorkerId worker) {
  if (Running* const running = find(name, operation)) running->absent.push_back(worker);
}

// Its sender has given up, or is lost.
void Mailboxes::forget(const GroupName& name, const ParcelSlot& slot, uint64_t number) {
  const auto group = groups_.find(name);
  const auto early = early_.find(name);
  if (group == groups_.end() && early == early_.end()) return;
  Parcels& parcels = group != groups_.end() ? group->second.arrived : early->second;
  const auto found = parcels.find(slot);
  if (found == parcels.end() || found->second.number != number) return;
  auto forgotten = std::make_shared<Arrived>(std::move(found->second));
  parcels.erase(found);
  if (group == groups_.end() && parcels.empty()) early_.erase(early);
  forgotten->taken->complete(error(ErrorKind::cancelled, "the sender of the parcel has given up"));
  strand_.release_later(std::move(forgotten));
}

}  // namespace rehearsal
