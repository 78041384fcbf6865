#include "core/rref/rref_context.h"

#include <algorithm>
#include <deque>
#include <sstream>

#include "core/base/check.h"
#include "core/calls/profiler_range.h"
#include "core/session/session.h"

namespace rehearsal {
namespace {

constexpr char kChanged[] =
    "a tensor argument was changed in place when the creation had yet to be sent, or to be sent "
    "again";

}  // namespace

RRefContext::RRefContext(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
                         Deadlines& deadlines, PendingCalls& pending, ServedCalls& served)
    : options_(options),
      strand_(strand),
      sessions_(sessions),
      deadlines_(deadlines),
      pending_(pending),
      served_(served) {}

std::shared_ptr<RRefHandle> RRefContext::make_handle(const RRefId& id, std::optional<ForkId> fork) {
  return std::make_shared<RRefHandle>(caller_, this, id, fork);
}

// ---- creating ---------------------------------------------------------------

std::shared_ptr<RRefHandle> RRefContext::create(Draft&& draft) {
  const ProfilerRange range([&] { return caller_->text_of(CallForm::remote, draft); });
  Execution& running = strand_.running();
  draft.made_in = running.label();
  RRefId id;
  id.causal = running.next_id();
  id.owner = draft.to;
  if (draft.to == options_.self) {
    auto handle = make_handle(id, std::nullopt);
    caller_->record(draft);
    strand_.post([this, draft = std::make_unique<Draft>(std::move(draft)), handle] {
      create_here(std::move(*draft), *handle);
    });
    return handle;
  }
  const ForkId fork{running.next_id()};
  auto handle = make_handle(id, fork);
  caller_->record(draft);
  strand_.post([this, draft = std::make_unique<Draft>(std::move(draft)), handle] {
    send_creation(std::move(*draft), *handle);
  });
  return handle;
}

// The counter is dense for each life of the owner: it is taken only for what is sent.
RRefId RRefContext::with_counter(RRefId id) {
  id.owner_incarnation = sessions_.incarnation(id.owner);
  auto& [incarnation, next] = next_counters_[id.owner];
  if (incarnation != id.owner_incarnation) {
    incarnation = id.owner_incarnation;
    next = 0;
  }
  id.counter = next++;
  return id;
}

// Fills in what is known only when the creation is issued; the error, if it cannot be.
MaybeError RRefContext::complete_creation(Draft& draft) {
  if (draft.call.context)
    if (MaybeError ended = records_->why_ended(*draft.call.context)) return ended;
  if (draft.target) {
    Result<RRefId> target = resolve(*draft.target);
    if (!target.ok()) return target.error();
    draft.call.target = target.value();
  }
  Status prepared = prepare_forks(draft.to, draft.call.id, kArgumentForks, draft.call.arguments);
  if (!prepared.ok()) return prepared.error();
  return std::nullopt;
}

void RRefContext::send_creation(Draft&& draft, RRefHandle& handle) {
  const ForkId fork = *handle.fork();
  if (users_.contains(fork)) return;  // A worker has called with the id of another call.
  UserRRef user{.id = handle.id(), .created_here = true, .parent = {}, .error = {}, .waiting = {}};
  MaybeError failed = sessions_.unavailable(draft.to);
  if (!failed) failed = complete_creation(draft);
  user.target = std::move(draft.target);
  user.origin = {.function = draft.function, .made_in = draft.made_in, .came_from = {}};
  if (failed) {
    strand_.release_later(std::move(user.target));
    user.state = UserState::refused;
    user.error = std::move(failed);
    return add_user(fork, std::move(user));
  }
  user.id = with_counter(handle.id());
  handle.set_counter(user.id);
  const RRefId id = user.id;
  const Duration time_left = caller_->time_left(draft);
  if (time_left.count() > 0)
    user.deadline = deadlines_.add(saturated(strand_.runtime().now(), time_left), [this, fork,
                                                                                   to = draft.to] {
      const auto found = users_.find(fork);
      if (found == users_.end() || found->second.state != UserState::pending) return;
      strand_.mark("a creation timed out");
      if (found->second.error) return;
      found->second.error = Error{.kind = ErrorKind::timeout,
                                  .text = "the owner has not answered the creation in time",
                                  .worker = name(to)};
      // Uses on their way give what later ones will.
      const Error why = *found->second.error;
      pending_.give_up_uses([fork](const RRefHandle& used) { return used.fork() == fork; }, why);
    });
  if (time_left.count() > 0 && options_.mutants.on(Mutant::creation_withdrawn))
    deadlines_.add(strand_.runtime().now() + time_left, [this, to = draft.to, id = draft.call.id] {
      static_cast<void>(sessions_.withdraw(to, id));
    });
  add_user(fork, std::move(user));
  draft.call.time_left = time_left;
  send_creation_call(std::move(draft), id, fork);
}

void RRefContext::create_here(Draft&& draft, RRefHandle& handle) {
  const RRefId id = with_counter(handle.id());
  handle.set_counter(id);
  OwnerRRef& owner = add_owner(id);
  owner.handles = 1;
  owner.uses = 1;
  owner.origin = {.function = draft.function, .made_in = draft.made_in, .came_from = {}};
  if (const MaybeError failed = complete_creation(draft)) {
    complete_value(id, *failed);
    return end_use(id);
  }
  draft.call.time_left = caller_->time_left(draft);
  send_creation_call(std::move(draft), id, {});
}

// In place of a creation whose tensors have changed goes one that still creates, but an error.
std::unique_ptr<CarriedTensors> RRefContext::carried_by_creation(const Call& call) {
  Call instead{.id = call.id, .kind = CallKind::operator_};
  instead.failure = kChanged;
  instead.created = call.created;
  instead.created_fork = call.created_fork;
  instead.arguments.forks = call.arguments.forks;
  auto changed = [this, fork = call.created_fork](const std::optional<std::string>& failure) {
    const auto user = users_.find(fork);
    if (user == users_.end() || user->second.error) return;
    user->second.error = Error{.kind = ErrorKind::bad_arguments,
                               .text = failure.value_or(kChanged),
                               .worker = strand_.name()};
  };
  return std::make_unique<CarriedTensors>(CarriedTensors{.tensors = carried_tensors(call.arguments),
                                                         .instead = Message{std::move(instead)},
                                                         .on_changed = std::move(changed)});
}

void RRefContext::send_creation_call(Draft&& draft, const RRefId& id, const ForkId& fork) {
  strand_.trace().on_event({.kind = EventKind::api_call,
                            .worker = options_.self,
                            .peer = draft.to,
                            .id = draft.call.id,
                            .number = static_cast<uint64_t>(draft.call.time_left.count()),
                            .digest = static_cast<uint64_t>(CallForm::remote),
                            .text = draft.function});
  draft.call.created = id;
  draft.call.created_fork = fork;
  SendOptions options{.waits_for_room = true,
                      .on_large_lane = draft.call.order.has_value(),
                      .carried = {},
                      .on_acknowledged = {},
                      .on_withdrawn = {}};
  if (!draft.call.arguments.tensors.empty()) options.carried = carried_by_creation(draft.call);
  if (!draft.call.arguments.forks.empty())
    options.on_withdrawn = [this, to = draft.to, forks = draft.call.arguments.forks] {
      undo_forks(to, forks);
    };
  if (draft.call.context) records_->follow_call(draft.call.context->id, draft.to, options);
  strand_.release_later(std::move(draft.target));
  sessions_.send(draft.to, Message{std::move(draft.call)}, std::move(options));
}

std::shared_ptr<RRefHandle> RRefContext::own(HeldValue value) {
  Execution& running = strand_.running();
  RRefId id;
  id.causal = running.next_id();
  id.owner = options_.self;
  auto handle = make_handle(id, std::nullopt);
  strand_.post(
      [this, handle, value = std::move(value), made_in = std::string(running.label())]() mutable {
        const RRefId id = with_counter(handle->id());
        handle->set_counter(id);
        OwnerRRef& owner = add_owner(id);
        owner.handles = 1;
        owner.value.emplace(std::move(value));
        owner.origin.made_in = std::move(made_in);
      });
  return handle;
}

// ---- users ------------------------------------------------------------------

void RRefContext::add_user(const ForkId& fork, UserRRef user) {
  const RRefId id = user.id;
  const auto [place, fresh] = users_.emplace(fork, std::move(user));
  REHEARSAL_CHECK(fresh, fork);
  trace_fork(EventKind::user_created, fork, id, id.owner);
}

void RRefContext::when_confirmed(const CausalId& fork, UniqueFunction<void(Status)> ready) {
  UserRRef& user = users_.at(fork);
  const auto status = [this, fork]() -> Status {
    const UserRRef& user = users_.at(fork);
    if (user.state == UserState::refused) return *user.error;
    return Unit{};
  };
  if (user.state != UserState::pending) return ready(status());
  user.waiting.push_back([status, ready = std::move(ready)]() mutable { ready(status()); });
}

MaybeError RRefContext::why_unusable(const RRefHandle& handle) const {
  if (handle.is_owner()) {
    if (owners_.contains(handle.id())) return std::nullopt;
    return why_not_alive(handle.id());
  }
  const auto user = users_.find(*handle.fork());
  if (user == users_.end())
    return Error{.kind = ErrorKind::rref_deleted,
                 .text = "this reference was released at shutdown",
                 .worker = strand_.name()};
  return user->second.error;
}

// The error says so if the owner was lost and is back: its new life does not know the reference.
Result<RRefId> RRefContext::resolve(const RRefHandle& handle) {
  const MaybeError error = why_unusable(handle);
  if (!error) return handle.id();
  const WorkerId owner = handle.id().owner;
  const Incarnation former = handle.id().owner_incarnation;
  const bool is_back = owner != options_.self && sessions_.joined(owner) && former.value != 0 &&
                       sessions_.incarnation(owner) != former;
  if (error->kind != ErrorKind::peer_lost || !is_back) return *error;
  return Error{.kind = ErrorKind::fenced,
               .text = "the reference is of a former life of '" + name(owner) + "': " + error->text,
               .worker = name(owner)};
}

bool RRefContext::confirmed_by_owner(const RRefHandle& handle) const {
  if (handle.is_owner()) return true;
  const auto user = users_.find(*handle.fork());
  if (user != users_.end()) return user->second.was_confirmed;
  return !released_unconfirmed_.contains(*handle.fork());  // released at the shutdown
}

void RRefContext::release(const RRefId& id, const std::optional<ForkId>& fork) {
  if (fork) {
    const auto user = users_.find(*fork);
    if (user == users_.end()) return;
    user->second.released = true;
    return delete_if_unused(*fork);
  }
  const auto owner = owners_.find(id);
  if (owner == owners_.end() || owner->second.handles == 0) return;
  --owner->second.handles;
  drop_if_unused(id);
}

// ---- the whole --------------------------------------------------------------

bool RRefContext::holds_references() const {
  return std::any_of(users_.begin(), users_.end(),
                     [](const auto& entry) { return !entry.second.released; }) ||
         std::any_of(owners_.begin(), owners_.end(),
                     [](const auto& entry) { return entry.second.handles > 0; });
}

std::string RRefContext::origin_text(const Origin& origin) const {
  std::string text;
  if (!origin.function.empty())
    text += ", made by remote of '" + origin.function + "'";
  else if (!origin.made_in.empty())
    text += ", made by rref";
  if (!origin.made_in.empty()) text += " in '" + origin.made_in + "'";
  if (origin.came_from) text += ", which came from '" + name(*origin.came_from) + "'";
  return text;
}

std::vector<std::string> RRefContext::release_all() {
  refuse_awaited();
  std::vector<std::string> lines;
  std::vector<CausalId> forks;
  for (auto& [fork, user] : users_) {
    if (user.released) continue;
    if (!user.created_here && options_.mutants.on(Mutant::received_references_stay)) continue;
    lines.push_back("'" + strand_.name() + "' holds a reference to a value of '" +
                    name(user.id.owner) + "'" + origin_text(user.origin) + ": " +
                    to_string(user.id.causal));
    user.released = true;
    if (!user.was_confirmed) released_unconfirmed_.insert(fork);
    forks.push_back(fork);
  }
  for (const CausalId& fork : forks) delete_if_unused(fork);
  std::vector<RRefId> owned;
  for (auto& [id, owner] : owners_) {
    if (owner.handles == 0) continue;
    lines.push_back("'" + strand_.name() + "' holds a reference to a value of its own" +
                    origin_text(owner.origin) + ": " + to_string(id.causal));
    owner.handles = 0;
    owned.push_back(id);
  }
  for (const RRefId& id : owned) drop_if_unused(id);
  return lines;
}

void RRefContext::clear() {
  closed_ = true;
  for (auto& [id, owner] : owners_) {
    if (owner.value && owner.value->ok()) values_left_.push_back(std::move(owner.value->value()));
    // A stack that waits for a value waits at the strand too, which ends the wait.
    strand_.release_later(std::make_shared<std::vector<Task>>(std::move(owner.waiting)));
    // Calls that wait for their turn own the value and its monitor, which owns them. The call
    // inside lets them in one after another, but does nothing more once it is killed.
    if (strand_.killed())
      strand_.release_later(std::make_shared<std::deque<Task>>(owner.monitor->give_up()));
  }
  owners_.clear();
  strand_.release_later(std::make_shared<decltype(to_come_)>(std::move(to_come_)));
  strand_.release_later(std::make_shared<decltype(users_)>(std::move(users_)));
  to_come_.clear();
  users_.clear();
  pending_children_.clear();
}

uint64_t RRefContext::shared_owner_count() const {
  return static_cast<uint64_t>(std::count_if(owners_.begin(), owners_.end(), [](const auto& entry) {
    return !entry.second.forks.empty();
  }));
}

uint64_t RRefContext::fork_count() const {
  uint64_t count = 0;
  for (const auto& [id, owner] : owners_) count += owner.forks.size();
  return count;
}

uint64_t RRefContext::handle_count() const {
  uint64_t count = 0;
  for (const auto& [id, owner] : owners_) count += owner.handles;
  return count;
}

uint64_t RRefContext::pending_user_count() const {
  uint64_t count = 0;
  for (const auto& [fork, user] : users_) count += user.state == UserState::pending ? 1 : 0;
  return count;
}

bool RRefContext::creates_at(WorkerId owner) const {
  return std::any_of(users_.begin(), users_.end(), [owner](const auto& entry) {
    const UserRRef& user = entry.second;
    return user.state == UserState::pending && user.created_here && user.id.owner == owner;
  });
}

bool RRefContext::awaits(WorkerId owner) const {
  return std::any_of(users_.begin(), users_.end(), [owner](const auto& entry) {
    return entry.second.state == UserState::pending && entry.second.id.owner == owner;
  });
}

std::string RRefContext::debug_info() const {
  std::ostringstream out;
  for (const auto& [id, owner] : owners_) {
    out << "owner of " << id.causal << ": " << (owner.value ? "has its value" : "waits for it")
        << ", handles " << owner.handles << ", uses " << owner.uses << ", forks";
    for (const auto& [fork, holder] : owner.forks)
      out << ' ' << fork << " held by " << name(holder);
    out << '\n';
  }
  for (const auto& [fork, user] : users_)
    out << "user " << fork << " of " << user.id.causal << " at " << name(user.id.owner) << ": "
        << (user.state == UserState::pending     ? "pending"
            : user.state == UserState::confirmed ? "confirmed"
                                                 : "refused")
        << (user.released ? ", released" : "") << ", children " << user.children << '\n';
  for (const auto& [fork, child] : pending_children_)
    out << "pending child " << fork << " of " << child.parent << " at " << name(child.holder)
        << '\n';
  for (const auto& [place, waiting] : to_come_)
    out << waiting.size() << " wait for " << waiting.front().id.causal << " to be created\n";
  return out.str();
}

// The creator of a value here has been met before: its loss ends what waits for the creation.
bool RRefContext::is_here(Incarnation incarnation) const {
  for (uint32_t id = 0; id < options_.names.size(); ++id)
    if (sessions_.incarnation(WorkerId{id}) == incarnation) return true;
  return false;
}

// Looked at between all events of a run, and nearly always empty: a stream is made when needed.
std::string RRefContext::check_invariants() const {
  std::optional<std::ostringstream> text;
  const auto out = [&text]() -> std::ostream& { return text ? *text : text.emplace(); };
  for (const auto& [id, owner] : owners_) {
    if (owner.forks.empty() && owner.handles == 0 && owner.uses == 0)
      out() << "owner of " << id.causal << " lives without a reference\n";
    if (!owner.value && owner.uses == 0)
      out() << "owner of " << id.causal << " has neither a value nor somebody making it\n";
    for (const auto& [fork, holder] : owner.forks)
      if (sessions_.lost(holder))
        out() << "fork " << fork << " is registered for the lost worker '" << name(holder) << "'\n";
  }
  for (const auto& [fork, child] : pending_children_)
    if (sessions_.lost(child.holder))
      out() << "fork " << fork << " pins its parent for the lost worker '" << name(child.holder)
            << "'\n";
  for (const auto& [place, waiting] : to_come_) {
    const auto& [creator, counter] = place;
    const CausalId& id = waiting.front().id.causal;
    if (!is_here(creator))
      out() << waiting.size() << " wait for " << id << ", whose creator is not here\n";
    const auto created = created_.find(creator);
    if (created != created_.end() && created->second.seen.contains(counter))
      out() << waiting.size() << " wait for " << id << " to be created, which is gone\n";
  }
  std::map<CausalId, uint64_t> children;
  for (const auto& [fork, child] : pending_children_) ++children[child.parent];
  for (const auto& [fork, user] : users_) {
    const auto found = children.find(fork);
    const uint64_t in_table = found == children.end() ? 0 : found->second;
    if (user.children != in_table)
      out() << "user " << fork << " counts " << user.children << " children, the table has "
            << in_table << '\n';
    if (user.state == UserState::refused && !user.error)
      out() << "user " << fork << " is refused without an error\n";
  }
  return text ? text->str() : std::string();
}

void RRefContext::trace_owner(EventKind kind, const RRefId& id) {
  strand_.trace().on_event(
      {.kind = kind, .worker = options_.self, .id = id.causal, .number = id.counter});
}

void RRefContext::trace_fork(EventKind kind, const CausalId& fork, const RRefId& rref,
                             WorkerId peer) {
  strand_.trace().on_event({.kind = kind,
                            .worker = options_.self,
                            .peer = peer,
                            .id = fork,
                            .number = CausalIdHash{}(rref.causal)});
}

void RRefContext::progressed() {
  if (on_progress_) on_progress_();
}

}  // namespace rehearsal
