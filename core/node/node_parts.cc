#include "core/node/node_parts.h"

#include "core/api/call_context.h"
#include "core/base/check.h"
#include "core/base/user_code.h"
#include "core/groups/dynamic_group.h"
#include "core/groups/static_group.h"

namespace rehearsal {
namespace {

constexpr uint32_t kQueuedCallsMax = 1 << 16;

SessionOptions session_options_of(const NodeOptions& options, bool dynamic) {
  return {.self = options.id,
          .incarnation = options.incarnation,
          .life = options.life,
          .names = options.names,
          .peer_timeout = options.peer_timeout,
          .heartbeat = options.heartbeat,
          .window_bytes = options.window_bytes,
          .window_frames = options.window_frames,
          .dynamic = dynamic,
          .grouped = true,
          .mutants = Mutants::from_names(options.mutants)};
}

// Notes the things that user code still held when the group shut down, by name.
void note_released(const NodeStrand& strand, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) strand.mark("released at shutdown: " + line);
}

// The main's path depends on the worker's name and life only. Were it the same in two lives, a
// worker that serves the same call of both would give what it makes there the same ids.
CausalId main_id(const NodeOptions& options, const Mutants& mutants) {
  const uint64_t name = hash_text(options.names[options.id.value]);
  const bool is_first = options.life == 0 || mutants.on(Mutant::lives_share_paths);
  const uint64_t life = is_first ? 0 : mix(options.life);
  return {options.incarnation, mix(Hash128{name ^ life, 0}, 0), 0};
}

Greeting greeting_of(const NodeOptions& options, const Program& program) {
  Greeting greeting = greeting_of_this_process(options.names[options.id.value],
                                               options.names.size(), program.registry().describe());
  greeting.life = options.life;
  greeting.dynamic = program.is_dynamic();
  return greeting;
}

}  // namespace

NodeParts::NodeParts(NodeOptions given, const Program& given_program,
                     Node::Environment given_environment)
    : options(std::move(given)),
      program(given_program),
      environment(std::move(given_environment)),
      session_options(session_options_of(options, program.is_dynamic())),
      greeting(greeting_of(options, program)),
      strand(std::make_shared<NodeStrand>(environment.runtime, environment.executions,
                                          environment.trace, options.id,
                                          options.names[options.id.value], options.seed)),
      codec(make_protobuf_codec()),
      main(strand->make_execution(main_id(options, session_options.mutants),
                                  options.names[options.id.value])),
      exceptions(*strand, program.registry().exceptions(), options.exception_traces),
      deadlines(*strand),
      sessions(session_options, *strand, *environment.transport, *codec, *this),
      pending(session_options, *strand, sessions, deadlines),
      served({.execution_limit = options.execution_limit, .queue_limit = kQueuedCallsMax},
             session_options, *strand, sessions, pending, program.registry()),
      rrefs(session_options, *strand, sessions, deadlines, pending, served),
      contexts(session_options, *strand, sessions, deadlines),
      group(make_group()),
      gatherings(session_options, *strand, sessions, deadlines),
      caller(std::make_shared<Caller>(strand, program.shared_registry(), options.names,
                                      options.rpc_timeout)),
      worker(Calls(caller, &rrefs), options.id, environment.checkpoints, *this) {
  REHEARSAL_CHECK(options.id.value < options.names.size(), options.id);
  REHEARSAL_CHECK(options.incarnation.value != 0);
  least_lives_.resize(options.names.size());
  strand->set_incarnation(options.incarnation);
  caller->set_parts({.calls = &pending,
                     .records = &contexts,
                     .contexts = &contexts,
                     .deadlines = &deadlines,
                     .gatherings = &gatherings});
  strand->set_exception_hook(&exceptions);
  pending.set_hooks(&rrefs, &contexts, &exceptions);
  rrefs.set_caller(caller, &contexts);
  served.set_hooks(
      &rrefs, &contexts, &rrefs,
      [this](const std::shared_ptr<ServedCall>& call, UniqueFunction<void(CallContext&)> body) {
        CallContext context(Calls(caller, &rrefs), call);
        body(context);
      });
  strand->set_on_progress([this] { progressed(); });
  sessions.set_on_progress([this] { progressed(); });
  rrefs.set_on_progress([this] { progressed(); });
  contexts.set_on_progress([this] { progressed(); });
}

void NodeParts::release_references() {
  note_released(*strand, contexts.release_all());
  note_released(*strand, rrefs.release_all());
  if (program.is_dynamic()) contexts.release_at_leaving();
}

std::unique_ptr<Group> NodeParts::make_group() {
  if (!program.is_dynamic())
    return std::make_unique<StaticGroup>(session_options, *strand, sessions, deadlines, *this);
  std::vector<bool> has_main;
  for (const Program::Member& member : program.members())
    has_main.push_back(static_cast<bool>(member.main));
  return std::make_unique<DynamicGroup>(session_options, *strand, sessions, deadlines, *this,
                                        std::move(has_main));
}

void NodeParts::await_member(WorkerId peer, const std::optional<Instant>& deadline,
                             const WaitHandle& wait, bool& came) {
  auto limit = std::make_shared<DeadlineId>();
  group->when_here(peer, [this, wait, &came, limit] {
    if (!wait.lasts()) return;
    deadlines.remove(*limit);
    came = true;
    wait.end();
  });
  if (deadline && !came) *limit = deadlines.add(*deadline, [wait] { wait.end(); });
}

// ---- messages ---------------------------------------------------------------

void NodeParts::on_message(WorkerId from, Message&& message) {
  if (ended) return;
  route(from, message);
  progressed();
}

struct NodeParts::Router {
  NodeParts& node;
  WorkerId from;

  void operator()(Call& call) const { node.served.on_call(from, std::move(call)); }
  void operator()(Response& response) const { node.pending.on_response(from, std::move(response)); }
  void operator()(Cancel& cancel) const { node.served.on_cancel(from, cancel); }
  void operator()(Item& item) const { node.pending.on_item(from, std::move(item)); }
  void operator()(Credit& credit) const { node.served.on_credit(credit); }
  void operator()(End& end) const { node.pending.on_end(from, std::move(end)); }
  void operator()(ForkRequest& request) const { node.rrefs.on_fork_request(from, request); }
  void operator()(ForkConfirm& confirm) const { node.rrefs.on_fork_confirm(confirm); }
  void operator()(ChildAccept& accept) const { node.rrefs.on_child_accept(accept); }
  void operator()(UserDelete& user_delete) const { node.rrefs.on_user_delete(from, user_delete); }
  void operator()(ContextReached& reached) const { node.contexts.on_reached(from, reached); }
  void operator()(ContextRelease& release) const { node.contexts.on_release(from, release); }
  void operator()(Gradients& gradients) const {
    node.contexts.on_gradients(from, std::move(gradients));
  }
  void operator()(GradientsAnswered& answered) const { node.contexts.on_answered(from, answered); }
  void operator()(PassFinish& finish) const { node.contexts.on_finish(from, finish); }
  void operator()(PassFinished& finished) const { node.contexts.on_finished(from, finished); }
  void operator()(PassFailed& failed) const { node.contexts.on_failed(failed); }
  void operator()(Goodbye& goodbye) const {
    node.sessions.fence(from, {.kind = ErrorKind::peer_lost,
                               .text = "worker '" + node.options.names[from.value] +
                                       "' has ended: " + goodbye.error.text,
                               .worker = node.options.names[from.value]});
  }
  template <class Other>
  void operator()(Other& other) const {
    if (node.group->on_message(from, Message{std::move(other)})) return;
    node.sessions.fence(from, {.kind = ErrorKind::protocol,
                               .text = "a message that this version does not serve",
                               .worker = node.options.names[from.value]});
  }
};

void NodeParts::route(WorkerId from, Message& message) {
  const bool of_shutdown = std::holds_alternative<ShutdownProbe>(message.content) ||
                           std::holds_alternative<ShutdownReport>(message.content);
  if (!of_shutdown) ++activity_;
  std::visit(Router{*this, from}, message.content);
}

Status NodeParts::check_hello(const Hello& hello) {
  Result<Greeting> theirs = greeting_from_text(hello.greeting);
  if (!theirs.ok()) return theirs.error();
  if (!same_arithmetic(greeting, theirs.value()))
    strand->mark("a peer computes with another LibTorch, instruction set or thread count");
  const std::string& name = options.names[hello.worker.value];
  if (Status fits = check_greeting(greeting, theirs.value(), name); !fits.ok()) return fits;
  uint32_t& least_life = least_lives_[hello.worker.value];
  if (theirs.value().life < least_life)
    return Error{.kind = ErrorKind::fenced,
                 .text = "worker '" + name + "' is known in a life of the same number or a later " +
                         "one than " + std::to_string(theirs.value().life),
                 .worker = name};
  if (MaybeError late = group->refuses(name)) return *late;
  least_life = theirs.value().life + 1;
  return Unit{};
}

void NodeParts::on_peer_joined(const Hello& hello) {
  const uint32_t life = least_lives_[hello.worker.value] - 1;
  gatherings.on_peer_joined(hello.worker, life);
  group->on_peer_joined(hello.worker, life);
}

void NodeParts::on_hello_refused(WorkerId peer, const Error& why) {
  group->on_hello_refused(peer, why);
}

void NodeParts::on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) {
  if (ended) return;
  served.on_peer_fenced(peer);
  pending.on_peer_fenced(peer, why);
  rrefs.on_peer_fenced(peer, incarnation, why);
  contexts.on_peer_fenced(peer, incarnation, why);
  gatherings.on_peer_fenced(peer, why);
  group->on_peer_fenced(peer, why);
}

void NodeParts::progressed() {
  if (!ended) group->progressed();
}

// ---- life -------------------------------------------------------------------

bool NodeParts::quiet(uint32_t phase) const {
  const bool busy = pending.size() > 0 || served.size() > 0 || strand->continuations() > 0 ||
                    contexts.pass_count() > 0 || contexts.running_walks() > 0;
  const bool counts = !session_options.mutants.on(Mutant::shutdown_counts_own_calls_only);
  const bool idle = !(busy && counts) && sessions.all_acknowledged();
  if (phase == 0 || !idle) return idle;
  return contexts.size() == 0 && rrefs.owner_count() == 0 && rrefs.user_count() == 0 &&
         rrefs.pending_child_count() == 0;
}

std::string NodeParts::left() const {
  const NodeCensus now = census();
  std::string text;
  const auto count = [&text](uint64_t number, std::string_view what) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(number) + " " + std::string(what) +
            (number == 1 ? "" : "s");
  };
  count(now.pending_calls, "unanswered call");
  count(now.executions, "running function");
  count(now.passes, "backward call");
  count(now.unacknowledged, "unacknowledged message");
  count(now.owners, "owned value");
  count(now.users, "reference");
  count(now.pending_children, "reference on its way");
  count(now.contexts, "autograd context");
  return text;
}

bool NodeParts::asked(WorkerId peer) const {
  return pending.count_to(peer) > 0 || rrefs.creates_at(peer);
}

// Passes end on all workers of their context.
bool NodeParts::awaits(WorkerId peer) const {
  return asked(peer) || rrefs.awaits(peer) || contexts.pass_count() > 0;
}

// The values that others hold here go with the worker.
bool NodeParts::holds_nothing() const {
  return rrefs.user_count() == 0 && rrefs.pending_child_count() == 0 && sessions.all_acknowledged();
}

Status NodeParts::join() {
  Status joined = Unit{};
  const Status waited = strand->wait("all workers to join", {}, [&](WaitHandle wait) {
    group->join(options.join_timeout, [&joined, wait](Status status) {
      if (!wait.lasts()) return;
      joined = std::move(status);
      wait.end();
    });
  });
  return waited.ok() ? joined : waited;
}

Status NodeParts::shut_down() {
  Status ended_well = Unit{};
  const Status waited = strand->wait("the end of the shutdown", {}, [&](WaitHandle wait) {
    group->shut_down(options.shutdown_timeout, [&ended_well, wait](Status status) {
      if (!wait.lasts()) return;
      ended_well = std::move(status);
      wait.end();
    });
  });
  return waited.ok() ? ended_well : waited;
}

Status NodeParts::run_main() {
  Status status = join();
  if (status.ok()) {
    strand->post_always([this] {
      strand->trace().on_event({.kind = EventKind::execution_started,
                                .worker = options.id,
                                .id = main->started_by(),
                                .text = main->label()});
    });
    auto returned = run_user_code(worker.name(), "main", [&] {
      if (const Program::Main& main = program.members()[options.id.value].main) main(worker);
    });
    strand->post_always([this] {
      strand->trace().on_event({.kind = EventKind::execution_ended,
                                .worker = options.id,
                                .id = main->started_by(),
                                .text = main->label()});
    });
    if (!returned.ok())
      status = returned.error();
    else if (!leaves_at_once)
      status = shut_down();
  }
  if (strand->killed()) throw NodeKilled{};
  Waiter gone;
  strand->post_always([&] {
    Error why = status.ok() ? Error{.kind = ErrorKind::node_stopped,
                                    .text = leaves_at_once ? "the worker has left at once"
                                                           : "the worker has shut down",
                                    .worker = strand->name()}
                            : status.error();
    if (status.ok() && !leaves_at_once)
      end(why);
    else
      abort(why);
    strand->runtime().wake(gone);
  });
  if (strand->runtime().park(gone) == ParkOutcome::killed) throw NodeKilled{};
  return status;
}

void NodeParts::abort(const Error& why) {
  if (ended) return;
  for (uint32_t id = 0; id < options.names.size(); ++id)
    if (WorkerId{id} != options.id && sessions.joined(WorkerId{id}))
      sessions.send(WorkerId{id}, Message{Goodbye{why}});
  end(why);
}

// The tables fail first, so that each wait gets its own error; what is left fails with `why`.
void NodeParts::end(const Error& why) {
  if (ended) return;
  ended = true;
  const Error stopped = why.kind == ErrorKind::node_stopped
                            ? why
                            : Error{.kind = ErrorKind::node_stopped,
                                    .text = "this worker has stopped: " + why.text,
                                    .worker = strand->name()};
  group->fail(stopped);
  pending.fail_all(stopped);
  served.clear();
  gatherings.clear();
  rrefs.clear();
  contexts.clear(stopped);
  deadlines.clear();
  sessions.stop();
  strand->close(stopped);
  strand->trace().on_event(
      {.kind = EventKind::node_stopped, .worker = options.id, .text = why.text});
  environment.transport->stop();
}

void NodeParts::kill() {
  if (strand->killed()) return;
  ended = true;
  sessions.stop();
  strand->kill();
  pending.forget_all();
  served.clear();
  gatherings.clear();
  rrefs.clear();
  contexts.clear(strand->why_closed());
  deadlines.clear();
}

NodeCensus NodeParts::census() const {
  return {.pending_calls = pending.size(),
          .executions = served.size() + strand->continuations() + contexts.running_walks(),
          .owners = rrefs.owner_count(),
          .owner_forks = rrefs.fork_count(),
          .owner_handles = rrefs.handle_count(),
          .users = rrefs.user_count(),
          .pending_users = rrefs.pending_user_count(),
          .pending_children = rrefs.pending_child_count(),
          .contexts = contexts.size(),
          .passes = contexts.pass_count(),
          .unacknowledged = ended ? 0 : sessions.unacknowledged(),
          .timers = deadlines.size()};
}

DebugInfo NodeParts::debug_info() const {
  const NodeCensus now = census();
  return {{"rpc.pending_calls", std::to_string(now.pending_calls)},
          {"rpc.executions", std::to_string(now.executions)},
          {"rpc.unacknowledged", std::to_string(now.unacknowledged)},
          {"rpc.timers", std::to_string(now.timers)},
          {"rpc.gatherings", std::to_string(gatherings.size())},
          {"rref.owners", std::to_string(now.owners)},
          {"rref.owner_forks", std::to_string(now.owner_forks)},
          {"rref.owner_handles", std::to_string(now.owner_handles)},
          {"rref.users", std::to_string(now.users)},
          {"rref.pending_users", std::to_string(now.pending_users)},
          {"rref.pending_children", std::to_string(now.pending_children)},
          {"rref.table", rrefs.debug_info()},
          {"autograd.contexts", std::to_string(now.contexts)},
          {"autograd.passes", std::to_string(now.passes)},
          {"autograd.table", contexts.debug_info()}};
}

WaitViews NodeParts::waits() const {
  return {.stacks = strand->waits().views(),
          .calls = pending.views(),
          .others = contexts.describe_waits() + group->describe()};
}

}  // namespace rehearsal
