#include "core/groups/dynamic_group.h"

#include <algorithm>
#include <utility>

#include "core/session/session.h"

namespace rehearsal {
namespace {

constexpr WorkerId kFounder{0};

}  // namespace

DynamicGroup::DynamicGroup(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
                           Deadlines& deadlines, NodeView& view, std::vector<bool> has_main)
    : options_(options),
      strand_(strand),
      sessions_(sessions),
      deadlines_(deadlines),
      view_(view),
      has_main_(std::move(has_main)),
      peers_(options.names.size()) {}

std::vector<WorkerId> DynamicGroup::met() const {
  std::vector<WorkerId> workers;
  for (uint32_t id = 0; id < peers_.size(); ++id)
    if (WorkerId{id} != options_.self && sessions_.joined(WorkerId{id}))
      workers.push_back(WorkerId{id});
  return workers;
}

bool DynamicGroup::is_member(WorkerId id) const {
  return id == options_.self || (sessions_.joined(id) && peer(id).member && !peer(id).leaves);
}

std::vector<WorkerId> DynamicGroup::members() const {
  std::vector<WorkerId> workers;
  for (uint32_t id = 0; id < peers_.size(); ++id)
    if (is_member(WorkerId{id})) workers.push_back(WorkerId{id});
  return workers;
}

uint64_t DynamicGroup::when_here(WorkerId worker, UniqueFunction<void()> here) {
  if (!is_member(worker) || !sessions_.linked(worker))
    return arrivals_.add(worker, std::move(here));
  here();
  return 0;
}

void DynamicGroup::on_link(WorkerId worker) {
  if (is_member(worker)) arrivals_.arrived(worker);
}

MaybeError DynamicGroup::refuses(const std::string& newcomer) const {
  if (stage_ != Stage::goes) return std::nullopt;
  return Error{.kind = ErrorKind::node_stopped,
               .text = "worker '" + newcomer + "' came when '" + strand_.name() + "' had left",
               .worker = strand_.name()};
}

bool DynamicGroup::on_message(WorkerId from, const Message& message) {
  if (const auto* view = std::get_if<GroupView>(&message.content))
    on_view(from, *view);
  else if (std::holds_alternative<Leaving>(message.content))
    on_leaving(from);
  else if (std::holds_alternative<NothingMore>(message.content))
    on_nothing_more(from);
  else if (std::holds_alternative<Leave>(message.content))
    on_gone(from);
  else
    return false;
  progressed();
  return true;
}

void DynamicGroup::on_peer_joined(WorkerId id, uint32_t life) {
  peer(id) = Peer{.life = life, .met = {}};
  send_view(id);
  settle_join();
  watch_mains();
  if (stage_ != Stage::drains && stage_ != Stage::releases) return;
  // It may ask before it hears that we leave.
  stage_ = Stage::drains;
  sessions_.send(id, Message{Leaving{}}, {.of_shutdown = true});
}

void DynamicGroup::on_peer_fenced(WorkerId id, const Error&) {
  peer(id) = Peer{.life = peer(id).life, .met = {}, .has_left = peer(id).has_left};
  watch_mains();
  for (const WorkerId other : met())
    if (!peer(other).member) send_view(other);
  settle_join();
  progressed();
}

// ---- joining ----------------------------------------------------------------

bool DynamicGroup::is_founder() const { return options_.self == kFounder && options_.life == 0; }

void DynamicGroup::join(Duration timeout, UniqueFunction<void(Status)> done) {
  join_done_ = std::move(done);
  join_timeout_ = timeout;
  join_deadline_ =
      deadlines_.add(strand_.runtime().now() + timeout, [this] { finish_join(join_timed_out()); });
  sessions_.start();
  if (is_founder()) return become_member();
  settle_join();  // There may be nobody to hear of.
}

void DynamicGroup::send_view(WorkerId to) {
  GroupView view{.member = member_, .met = {}};
  for (const WorkerId other : met())
    if (other != to) view.met.push_back({other, peer(other).life.value_or(0)});
  sessions_.send(to, Message{std::move(view)}, {.of_shutdown = true});
}

void DynamicGroup::on_view(WorkerId from, const GroupView& view) {
  Peer& sender = peer(from);
  sender.met = view.met;
  const bool comes = view.member && !std::exchange(sender.member, view.member);
  if (comes) sessions_.begin_to_serve(from);
  settle_join();
  if (comes) arrivals_.arrived(from);
}

// Of those that were there when this worker, the founder, came again: whoever has not said whom it
// has met. One that is lost has nothing to say.
std::vector<WorkerId> DynamicGroup::not_heard() const {
  std::vector<WorkerId> workers;
  for (const WorkerId id : options_.founds_after.value_or(std::vector<WorkerId>())) {
    const bool lost = peer(id).life && !sessions_.joined(id);
    if (!peer(id).met && !lost) workers.push_back(id);
  }
  return workers;
}

bool DynamicGroup::has_met_member() const {
  const std::vector<WorkerId> others = met();
  return std::any_of(others.begin(), others.end(), [&](WorkerId id) { return peer(id).member; });
}

// That life of the worker, or a later one, has met us, or was lost to us.
bool DynamicGroup::knows(const MetMember& other) const {
  if (other.worker == options_.self) return true;
  if (other.worker.value >= peers_.size()) return true;
  const std::optional<uint32_t>& life = peer(other.worker).life;
  return life && *life >= other.life;
}

void DynamicGroup::settle_join() {
  if (member_ || !join_done_) return;
  if (!has_met_member()) {
    if (options_.founds_after && not_heard().empty()) become_member();
    return;
  }
  const std::vector<WorkerId> others = met();
  const bool known = std::all_of(others.begin(), others.end(), [&](WorkerId id) {
    const auto& theirs = peer(id).met;
    return theirs && std::all_of(theirs->begin(), theirs->end(),
                                 [this](const MetMember& other) { return knows(other); });
  });
  if (known || options_.mutants.on(Mutant::joins_by_one_member)) become_member();
}

void DynamicGroup::become_member() {
  member_ = true;
  for (const WorkerId other : met()) send_view(other);
  finish_join(Unit{});
}

void DynamicGroup::finish_join(Status status) {
  if (!join_done_) return;
  deadlines_.remove(join_deadline_);
  auto done = std::move(join_done_);
  join_done_ = nullptr;
  done(std::move(status));
}

// A worker that has left refuses newcomers: these hear from others that it has gone.
bool DynamicGroup::may_have_left(WorkerId peer) const {
  return sessions_.unavailable(peer).has_value();
}

void DynamicGroup::on_hello_refused(WorkerId id, const Error& why) {
  if (why.kind != ErrorKind::node_stopped) return finish_join(why);
  peer(id).had_left = true;
  strand_.mark("a worker that had left refused a newcomer");
}

Error DynamicGroup::join_timed_out() const {
  const std::vector<WorkerId> missed = missing();
  return {.kind = ErrorKind::timeout,
          .text = "the group has not been joined in time; missing: " + describe_missing(),
          .worker = missed.empty() ? strand_.name() : options_.names[missed.front().value]};
}

// Without a member nobody joins: it is the founder that is missed, which brings all others in.
std::vector<WorkerId> DynamicGroup::missing() const {
  if (!has_met_member()) return options_.founds_after ? not_heard() : std::vector{kFounder};
  const std::vector<WorkerId> others = met();
  std::vector<bool> missed(peers_.size(), false);
  for (const WorkerId id : others) {
    if (!peer(id).met) {
      missed[id.value] = true;
      continue;
    }
    for (const MetMember& other : *peer(id).met)
      if (!knows(other)) missed[other.worker.value] = true;
  }
  std::vector<WorkerId> workers;
  for (uint32_t id = 0; id < missed.size(); ++id)
    if (missed[id]) workers.push_back(WorkerId{id});
  return workers;
}

std::string DynamicGroup::describe_missing() const {
  std::string list;
  for (const WorkerId id : missing()) add_to_list(list, options_.names[id.value], absence(id));
  return list;
}

std::string DynamicGroup::absence(WorkerId id) const {
  if (has_met_member() || options_.founds_after) return sessions_.absence(id);
  if (peer(id).had_left) return "it founded the group and has left it; nobody else is a member";
  if (id == options_.self || sessions_.joined(id))
    return "it has come again, and no member that it finds is there";
  return "it founds the group: " + sessions_.absence(id);
}

// ---- leaving ----------------------------------------------------------------

void DynamicGroup::shut_down(Duration timeout, UniqueFunction<void(Status)> done) {
  leave_done_ = std::move(done);
  leave_timeout_ = timeout;
  stage_ = Stage::waits_for_mains;
  watch_mains();
  progressed();
}

void DynamicGroup::progressed() {
  const bool awaited = leave_done_ || std::any_of(peers_.begin(), peers_.end(), [](const Peer& to) {
                         return to.leaves && !to.told_nothing;
                       });
  if (!awaited || std::exchange(check_due_, true)) return;
  strand_.post([this] {
    check_due_ = false;
    recheck();
  });
}

void DynamicGroup::recheck() {
  answer_leavers();
  if (!leave_done_) return;
  if (stage_ == Stage::waits_for_mains) {
    if (!has_main_[options_.self.value] && !mains_have_gone()) return;
    begin_to_leave();
  }
  settle_leaving();
}

void DynamicGroup::on_leaving(WorkerId from) {
  peer(from).leaves = true;
  if (options_.mutants.on(Mutant::leaver_is_asked_on)) return;
  const std::string& name = options_.names[from.value];
  sessions_.ask_nothing_new(from, {.kind = ErrorKind::peer_lost,
                                   .text = "worker '" + name + "' is leaving the group",
                                   .worker = name});
}

void DynamicGroup::on_nothing_more(WorkerId from) {
  if (stage_ < Stage::drains)
    return sessions_.accuse(from, {"NothingMore", "answers a worker that does not leave"});
  peer(from).asks_nothing = true;
}

void DynamicGroup::answer_leavers() {
  for (const WorkerId id : met()) {
    Peer& leaver = peer(id);
    if (!leaver.leaves || leaver.told_nothing || view_.awaits(id)) continue;
    leaver.told_nothing = true;
    view_.ask_nothing_more(id);
    sessions_.send(id, Message{NothingMore{}}, {.of_shutdown = true});
  }
}

void DynamicGroup::on_gone(WorkerId from) {
  const std::string& name = options_.names[from.value];
  const bool owes = view_.asked(from);
  peer(from).has_left = true;
  sessions_.fence(from, {.kind = owes ? ErrorKind::protocol : ErrorKind::peer_lost,
                         .text = "worker '" + name + "' has left the group" +
                                 (owes ? " without answering what it was asked" : ""),
                         .worker = name});
}

// Whether those that this worker serves have all come and left, or are given up.
bool DynamicGroup::mains_have_gone() const {
  for (uint32_t id = 0; id < peers_.size(); ++id) {
    if (WorkerId{id} == options_.self || !has_main_[id]) continue;
    if (sessions_.joined(WorkerId{id})) return false;
    if (!peers_[id].has_left && !no_mains_come_) return false;
  }
  return true;
}

// Nobody that has a main is there: the time begins in which one must come.
void DynamicGroup::watch_mains() {
  if (stage_ != Stage::waits_for_mains || has_main_[options_.self.value]) return;
  deadlines_.remove(std::exchange(mains_deadline_, {}));
  no_mains_come_ = false;
  const std::vector<WorkerId> others = met();
  if (std::any_of(others.begin(), others.end(),
                  [this](WorkerId id) { return has_main_[id.value]; }))
    return;
  mains_deadline_ = deadlines_.add(strand_.runtime().now() + join_timeout_, [this] {
    no_mains_come_ = true;
    progressed();
  });
}

void DynamicGroup::begin_to_leave() {
  stage_ = Stage::drains;
  deadlines_.remove(std::exchange(mains_deadline_, {}));
  sessions_.acknowledge_at_once();
  leave_deadline_ = deadlines_.add(strand_.runtime().now() + leave_timeout_, [this] {
    strand_.mark("leaving the group timed out");
    finish_leaving(Error{.kind = ErrorKind::timeout,
                         .text = "leaving the group took too long; " + missing_from_leaving(),
                         .worker = strand_.name()});
  });
  tell_all(Message{Leaving{}});
}

void DynamicGroup::tell_all(const Message& message) {
  for (const WorkerId other : met()) sessions_.send(other, message, {.of_shutdown = true});
}

// Nobody will ask anything more.
bool DynamicGroup::drained() const {
  const std::vector<WorkerId> others = met();
  return options_.mutants.on(Mutant::leaves_undrained) ||
         std::all_of(others.begin(), others.end(),
                     [this](WorkerId id) { return peer(id).asks_nothing; });
}

void DynamicGroup::settle_leaving() {
  if (stage_ == Stage::goes) return go();
  if (!drained() || !view_.quiet(0)) return;
  if (stage_ == Stage::drains) {
    stage_ = Stage::releases;
    view_.release_references();
  }
  if (!view_.holds_nothing()) return;
  stage_ = Stage::goes;
  view_.refuse_calls();
  for (const WorkerId other : met()) sessions_.expect_silence(other);
  tell_all(Message{Leave{}});
  go();
}

// Stays until the others have its last message, and what ends with those that have gone meanwhile
// has ended here; bounded, since they may be gone by then.
void DynamicGroup::go() {
  if (sessions_.flushed() && view_.quiet(0)) return finish_leaving(Unit{});
  if (linger_deadline_.number > 0) return;
  linger_deadline_ = deadlines_.add(strand_.runtime().now() + options_.peer_timeout,
                                    [this] { finish_leaving(Unit{}); });
}

void DynamicGroup::finish_leaving(Status status) {
  if (!leave_done_) return;
  deadlines_.remove(leave_deadline_);
  deadlines_.remove(linger_deadline_);
  auto done = std::move(leave_done_);
  leave_done_ = nullptr;
  done(std::move(status));
}

std::string DynamicGroup::missing_from_leaving() const {
  if (stage_ == Stage::waits_for_mains) return "it serves those who work";
  if (stage_ == Stage::goes) return "it waits for acknowledgements";
  if (stage_ == Stage::releases) return "its references are not released";
  std::string text = view_.quiet(0) ? "waits for:" : "is busy; waits for:";
  for (const WorkerId id : met())
    if (!peer(id).asks_nothing) text += " '" + options_.names[id.value] + "'";
  return text;
}

void DynamicGroup::fail(const Error& why) {
  arrivals_.clear();
  finish_join(why);
  finish_leaving(why);
}

std::string DynamicGroup::describe() const {
  if (join_done_) return "join waits for " + describe_missing() + "\n";
  if (leave_done_) return "leave: " + missing_from_leaving() + "\n";
  return {};
}

}  // namespace rehearsal
