#include "core/autograd/contexts.h"

#include <ATen/core/grad_mode.h>

#include "core/autograd/unrecorded.h"
#include "core/base/check.h"
#include "core/base/user_code.h"
#include "core/session/session.h"

namespace rehearsal {

AutogradContexts::AutogradContexts(const SessionOptions& options, NodeStrand& strand,
                                   Sessions& sessions, Deadlines& deadlines)
    : options_(options),
      strand_(strand),
      sessions_(sessions),
      passes_(options, strand, sessions, deadlines) {
  strand_.set_on_nodes_made([this](const CausalId& maker, uint64_t thread, uint64_t from,
                                   uint64_t to) { passes_.note_nodes(maker, thread, from, to); });
}

ContextRecord* AutogradContexts::find(const CausalId& id) {
  const auto found = contexts_.find(id);
  return found == contexts_.end() ? nullptr : &found->second;
}

void AutogradContexts::trace(EventKind kind, const ContextRecord& context) {
  strand_.trace().on_event({.kind = kind,
                            .worker = options_.self,
                            .peer = context.creator,
                            .id = context.id,
                            .number = context.creator == options_.self ? 1u : 0u});
}

Error AutogradContexts::ended_error(const AutogradContextId& id) const {
  return {.kind = ErrorKind::autograd,
          .text = "the autograd context " + to_string(id) +
                  " has ended: keep it for as long as something is called in it",
          .worker = strand_.name(),
          .function = {},
          .chain = {}};
}

// ---- life -----------------------------------------------------------------------

ContextRecord& AutogradContexts::add(const ContextName& name) {
  const auto [place, fresh] = contexts_.try_emplace(name.id);
  REHEARSAL_CHECK(fresh, name.id);
  place->second.id = name.id;
  place->second.creator = name.creator;
  place->second.streams = StreamSet::from_pool(strand_.devices());
  trace(EventKind::context_opened, place->second);
  return place->second;
}

void AutogradContexts::open(const AutogradContextId& id) {
  // One that is there: a worker has called with the id of another call.
  if (!contexts_.contains(id)) add({id, options_.self});
}

void AutogradContexts::end(const AutogradContextId& id) {
  ContextRecord* const context = find(id);
  if (context == nullptr) return;
  REHEARSAL_CHECK(context->creator == options_.self, id);
  for (const WorkerId holder : context->holders) {
    const auto calls = context->undelivered.find(holder);
    if (calls == context->undelivered.end() || options_.mutants.on(Mutant::release_overtakes_calls))
      send_release(id, holder);
    else
      late_releases_[{id, holder}] = calls->second;
  }
  release(*context, ended_error(id));
}

void AutogradContexts::send_release(const AutogradContextId& id, WorkerId to) {
  sessions_.send(to, Message{ContextRelease{id}});
}

void AutogradContexts::release(ContextRecord& context, const Error& why) {
  passes_.end_context(context, why);
  if (released_by_relays())
    for (const WorkerId peer : context.peers) send_release(context.id, peer);
  if (context.met_through)
    (*context.met_through == context.creator ? own_ : relayed_).remove(*context.met_through);
  trace(EventKind::context_released, context);
  const CausalId id = context.id;
  if (context.creator != options_.self && ended_.insert(id).second) {
    ended_order_.push_back(id);
    if (ended_order_.size() > kEndedMax) {
      ended_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  strand_.release_later(std::make_shared<ContextRecord>(std::move(context)));
  contexts_.erase(id);
  strand_.progressed();
}

MaybeError AutogradContexts::why_ended(const ContextName& context) const {
  if (contexts_.contains(context.id)) return std::nullopt;
  if (context.creator != options_.self && !ended_.contains(context.id)) return std::nullopt;
  strand_.mark("a call was made in an autograd context that has ended");
  return ended_error(context.id);
}

// A worker that names so many contexts of others may have been told that they are: it is not
// blamed.
MaybeError AutogradContexts::why_too_many(const ContextName& context, WorkerId from) {
  if (from == options_.self) return std::nullopt;
  const bool is_own = from == context.creator;
  if ((is_own ? own_ : relayed_).add(from, options_.limits.contexts)) return std::nullopt;
  if (is_own)
    sessions_.accuse(from, {"Call.context", "is one more than one worker may have at once"});
  return Error{.kind = ErrorKind::overloaded,
               .text = "worker '" + name(from) + "' has brought " +
                       std::to_string(options_.limits.contexts) + " autograd contexts that last",
               .worker = strand_.name(),
               .function = {},
               .chain = {}};
}

Status AutogradContexts::meet_context(const ContextName& context, WorkerId from) {
  if (ContextRecord* const known = find(context.id)) {
    if (known->creator != context.creator)
      return Error{.kind = ErrorKind::protocol,
                   .text = "Call.context_creator is not the worker that has made the context",
                   .worker = name(from)};
    if (from != options_.self) known->peers.insert(from);
    return Unit{};
  }
  const bool created_here = context.creator == options_.self;
  if (created_here || ended_.contains(context.id)) {
    strand_.mark("a call came for an autograd context that has ended");
    return ended_error(context.id);
  }
  if (sessions_.lost(context.creator) ||
      sessions_.incarnation(context.creator) != context.id.incarnation) {
    return Error{.kind = ErrorKind::autograd,
                 .text = "the creator of autograd context " + to_string(context.id) + ", '" +
                         name(context.creator) + "', is lost",
                 .worker = name(context.creator),
                 .function = {},
                 .chain = {}};
  }
  if (MaybeError too_many = why_too_many(context, from)) return *too_many;
  ContextRecord& met = add(context);
  if (from != options_.self) {
    met.met_through = from;
    met.peers.insert(from);
  }
  if (from != context.creator && !released_by_relays())
    sessions_.send(context.creator, Message{ContextReached{context.id}});
  return Unit{};
}

void AutogradContexts::on_reached(WorkerId from, const ContextReached& message) {
  if (ContextRecord* const context = find(message.context)) {
    context->holders.insert(from);
    return;
  }
  strand_.mark("a worker met an autograd context that has ended");
  if (!late_releases_.contains({message.context, from})) send_release(message.context, from);
}

void AutogradContexts::on_release(WorkerId from, const ContextRelease& message) {
  ContextRecord* const context = find(message.context);
  // It comes twice to a worker that the creator called and that others reached at the end.
  if (context == nullptr) return;
  if (context->creator != from && !released_by_relays())
    return sessions_.accuse(from, {"ContextRelease.context", "is a context of another worker"});
  release(*context, ended_error(message.context));
}

void AutogradContexts::call_sent(const AutogradContextId& id, WorkerId to) {
  if (to == options_.self) return;
  ContextRecord* const context = find(id);
  if (context == nullptr) return;
  context->peers.insert(to);
  if (context->creator != options_.self) return;
  context->holders.insert(to);
  ++context->undelivered[to];
}

void AutogradContexts::call_delivered(const AutogradContextId& id, WorkerId to) {
  if (ContextRecord* const context = find(id)) {
    const auto calls = context->undelivered.find(to);
    if (calls != context->undelivered.end() && --calls->second == 0)
      context->undelivered.erase(calls);
    return;
  }
  const auto late = late_releases_.find({id, to});
  if (late == late_releases_.end() || --late->second > 0) return;
  late_releases_.erase(late);
  send_release(id, to);
}

void AutogradContexts::on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) {
  passes_.on_peer_fenced(peer, why);
  std::erase_if(late_releases_, [peer](const auto& late) { return late.first.second == peer; });
  std::vector<CausalId> orphans;
  for (auto& [id, context] : contexts_) {
    if (context.met_through == peer) context.met_through.reset();
    context.told_dead.erase(peer);
    for (auto& [message, sent] : context.sent)
      if (sent.caused_by == peer) sent.caused_by.reset();
    context.holders.erase(peer);
    context.undelivered.erase(peer);
    if (context.peers.erase(peer) > 0) context.lost.emplace(peer, why);
    if (context.gradients.has_unsettled(incarnation)) context.in_doubt = why;
    if (context.creator == peer && id.incarnation == incarnation &&
        !options_.mutants.on(Mutant::lost_creator_keeps_contexts))
      orphans.push_back(id);
  }
  for (const CausalId& id : orphans) release(contexts_.at(id), why);
  own_.forget(peer);
  relayed_.forget(peer);
}

std::vector<std::string> AutogradContexts::release_all() {
  std::vector<AutogradContextId> created;
  std::vector<std::string> lines;
  for (const auto& [id, context] : contexts_) {
    if (context.creator != options_.self) continue;
    created.push_back(context.id);
    lines.push_back("'" + strand_.name() + "' holds autograd context " + to_string(id));
  }
  for (const AutogradContextId& id : created) end(id);
  return lines;
}

void AutogradContexts::release_at_leaving() {
  // To the others it is lost.
  const Error why{.kind = ErrorKind::peer_lost,
                  .text = "worker '" + strand_.name() + "' has left the group",
                  .worker = strand_.name()};
  std::vector<CausalId> ids;
  for (const auto& [id, context] : contexts_) ids.push_back(id);
  for (const CausalId& id : ids) release(contexts_.at(id), why);
}

void AutogradContexts::clear(const Error& why) {
  passes_.clear(why);
  late_releases_.clear();
  auto contexts = std::make_shared<std::map<CausalId, ContextRecord>>(std::move(contexts_));
  contexts_.clear();
  strand_.release_later(std::move(contexts));
}

// ---- what calls record ------------------------------------------------------------

std::optional<ContextName> AutogradContexts::context_of(const Execution& running) const {
  if (!at::GradMode::is_enabled()) return std::nullopt;
  if (running.label() == kContinuation && options_.mutants.on(Mutant::continuation_forgets_context))
    return std::nullopt;
  return *running.context;
}

std::optional<AutogradMetadata> AutogradContexts::record_send(const ContextName& context,
                                                              WorkerId to, CausedBy by,
                                                              Payload& payload,
                                                              const std::string& what) {
  if (!need_gradients(payload.tensors)) return std::nullopt;
  const AutogradMessageId message{strand_.running().next_id()};
  auto function = SendRpcBackward::make({context.id, message, to}, payload.tensors);
  std::optional<WorkerId> caused_by;
  if (by == CausedBy::receiver && to != options_.self) caused_by = to;
  strand_.post([this, context, message, function = std::move(function), what, caused_by]() mutable {
    ContextRecord* const record = find(context.id);
    if (record == nullptr) {
      strand_.mark("tensors were sent in an autograd context that has ended");
      return strand_.release_later(std::move(function));
    }
    // A function may answer when its caller is lost.
    if (caused_by && sessions_.lost(*caused_by)) caused_by.reset();
    if (caused_by && !passes_.caused_sends().add(*caused_by, options_.limits.sends)) {
      strand_.release_later(std::move(function));
      return sessions_.accuse(*caused_by, {"Call.context",
                                           "has more results than one worker may "
                                           "have recorded at once"});
    }
    record->sent.emplace(
        message, SentMessage{std::move(function), std::move(what), std::nullopt, caused_by});
  });
  return AutogradMetadata{context.id, message, context.creator};
}

void AutogradContexts::record_receive(const AutogradMetadata& metadata, const MessageText& text,
                                      Payload& payload) {
  RecvRpcBackward::receive({metadata.context, metadata.message, text.from}, payload.tensors,
                           payload.places(), text_of(text));
}

void AutogradContexts::mark_unrecorded(const MessageText& text, Unrecorded why, Payload& payload) {
  if (options_.mutants.on(Mutant::unrecorded_not_marked)) return;
  const std::string_view reason = why == Unrecorded::outside ? " outside any autograd context"
                                  : why == Unrecorded::gradients_off
                                      ? " with gradients switched off"
                                      : " with an exception, which no context records";
  const auto how = std::make_shared<const std::string>(text_of(text) + std::string(reason));
  for (const at::Tensor& tensor : payload.tensors)
    if (tensor.defined() && tensor.requires_grad()) mark_as_unrecorded(tensor, how);
}

std::string AutogradContexts::text_of(const MessageText& text) const {
  return std::string(text.what) + " '" + std::string(text.function) + "', which '" +
         name(text.from) + "' sent to '" + strand_.name() + "'";
}

// ---- passes and gradients -----------------------------------------------------------

void AutogradContexts::start_pass(const ContextName& context, PassRequest request) {
  ContextRecord* const record = find(context.id);
  if (record == nullptr) return request.done(ended_error(context.id));
  if (request.made_in != nullptr && !options_.mutants.on(Mutant::pass_ahead_of_its_roots))
    record->streams->after(*request.made_in);
  passes_.start(*record, std::move(request));
}

Streams AutogradContexts::streams_of(const ContextName& context) const {
  const auto found = contexts_.find(context.id);
  return found == contexts_.end() ? nullptr : found->second.streams;
}

Result<LeafGradients> AutogradContexts::gradients(const ContextName& context) const {
  const auto found = contexts_.find(context.id);
  if (found == contexts_.end()) return ended_error(context.id);
  const ContextRecord& record = found->second;
  return run_user_code(strand_.name(), "get_gradients", [&] {
    const bool elsewhere = options_.mutants.on(Mutant::gradients_summed_elsewhere);
    const InStreams in(elsewhere ? nullptr : record.streams);
    return record.gradients.sum();
  });
}

Status AutogradContexts::replace_gradients(const ContextName& context, LeafGradients gradients) {
  const auto found = contexts_.find(context.id);
  if (found == contexts_.end()) return ended_error(context.id);
  found->second.gradients.replace(std::move(gradients));
  return Unit{};
}

// ---- for people and oracles -----------------------------------------------------------

uint64_t AutogradContexts::send_function_count() const {
  uint64_t count = 0;
  for (const auto& [id, context] : contexts_) count += context.sent.size();
  return count;
}

std::string AutogradContexts::debug_info() const {
  std::string lines;
  for (const auto& [id, context] : contexts_)
    lines += "autograd context " + to_string(id) + " of " + name(context.creator) + ": " +
             std::to_string(context.sent.size()) + " send functions, " +
             std::to_string(context.gradients.size()) + " gradients, " +
             std::to_string(context.peers.size()) + " peers\n";
  return lines;
}

std::string AutogradContexts::check_invariants() const {
  std::string broken = passes_.check_invariants();
  for (const auto& [id, context] : contexts_) {
    const bool here = context.creator == options_.self;
    if (here != (id.incarnation == options_.incarnation))
      broken += "autograd context " + to_string(id) + " is of another creator than its id says\n";
    if (!here && !context.holders.empty())
      broken += "autograd context " + to_string(id) + " has holders away from its creator\n";
    if (ended_.contains(id))
      broken += "autograd context " + to_string(id) + " is there although it has ended\n";
  }
  for (const auto& [late, calls] : late_releases_)
    if (contexts_.contains(late.first))
      broken += "autograd context " + to_string(late.first) + " waits for its release\n";
  return broken;
}

}  // namespace rehearsal
