#include "core/node/node_parts.h"

#include "core/api/call_context.h"
#include "core/base/check.h"
#include "core/base/engine_threads.h"
#include "core/base/user_code.h"
#include "core/checkpoint/life_history.h"
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
          .refusal_limit = options.refusal_limit,
          .window_bytes = options.window_bytes,
          .window_frames = options.window_frames,
          .marked_max = options.marked_max,
          .limits = options.limits,
          .dynamic = dynamic,
          .founds_after = options.founds_after,
          .grouped = true,
          .mutants = Mutants::from_names(options.mutants)};
}

// The main's path depends on the worker's name and life only. Were it the same in two lives, a
// worker that serves the same call of both would give what it makes there the same ids.
CausalId main_id(const NodeOptions& options, uint32_t life) {
  const uint64_t name = hash_text(options.names[options.id.value]);
  const uint64_t of_life = life == 0 ? 0 : mix(life);
  return {options.incarnation, mix(Hash128{name ^ of_life, 0}, 0), 0};
}

// All lives draw the same random numbers: one that goes on where another was saved draws what that
// would have drawn.
std::shared_ptr<Execution> make_main(const NodeOptions& options, const Mutants& mutants,
                                     NodeStrand& strand) {
  const uint32_t life = mutants.on(Mutant::lives_share_paths) ? 0 : options.life;
  auto main = strand.make_execution(main_id(options, life), options.names[options.id.value]);
  main->set_stream(main_id(options, 0).execution_path());
  return main;
}

WorkerDevices devices_of(const NodeOptions& options, const Program& program) {
  WorkerDevices devices{.count = options.devices.count};
  if (options.lending) devices.lending = options.lending->place();
  if (options.id.value >= program.members().size()) return devices;
  const Program::Member& member = program.members()[options.id.value];
  devices.declared = member.devices;
  devices.maps = member.device_maps;
  return devices;
}

Greeting greeting_of(const NodeOptions& options, const Program& program) {
  Greeting greeting = greeting_of_this_process(options.names[options.id.value],
                                               options.names.size(), program.registry().describe());
  greeting.life = options.life;
  greeting.dynamic = program.is_dynamic();
  greeting.peer_timeout = options.peer_timeout;
  greeting.devices = devices_of(options, program);
  return greeting;
}

CodeWaitRules code_wait_rules(const Mutants& mutants) {
  return {.ends_when_given_up = !mutants.on(Mutant::given_up_waits_stay),
          .refused_when_given_up = !mutants.on(Mutant::given_up_waits_begin),
          .wake_counts = !mutants.on(Mutant::wake_lost_to_giving_up),
          .ends_its_timer = !mutants.on(Mutant::timer_outlives_wait)};
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
      codec(make_protobuf_codec(options.limits.decoded_bytes)),
      devices(options.names, options.id, greeting.devices),
      main(make_main(options, session_options.mutants, *strand)),
      exceptions(*strand, program.registry().exceptions(), options.exception_traces,
                 options.exception_witness),
      deadlines(*strand),
      sessions(session_options, *strand, *environment.transport, *codec, *this),
      pending(session_options, *strand, sessions, deadlines),
      served({.execution_limit = options.execution_limit, .queue_limit = kQueuedCallsMax},
             session_options, *strand, sessions, pending, program.registry()),
      rrefs(session_options, *strand, sessions, deadlines, pending, served),
      contexts(session_options, *strand, sessions, deadlines),
      group(make_group()),
      gatherings(session_options, *strand, sessions, deadlines),
      published(session_options, *strand),
      caller(std::make_shared<Caller>(strand, program.shared_registry(), options.names,
                                      options.rpc_timeout)),
      worker(Calls(caller, &rrefs)) {
  REHEARSAL_CHECK(options.id.value < options.names.size(), options.id);
  REHEARSAL_CHECK(options.incarnation.value != 0);
  REHEARSAL_CHECK(worker_of(options.incarnation) == options.id, options.incarnation);
  REHEARSAL_CHECK(options.names.size() <= kWorkersMax, options.names.size());
  least_lives_.resize(options.names.size());
  peer_timeouts_.resize(options.names.size());
  strand->set_incarnation(options.incarnation);
  strand->set_devices(options.devices);
  strand->set_lending(options.lending);
  if (options.lending) options.lending->meet(options.id, greeting.devices.lending);
  strand->set_mutants(session_options.mutants);
  served.set_devices(devices);
  strand->set_code_wait_rules(code_wait_rules(session_options.mutants));
  caller->set_parts({.calls = &pending,
                     .records = &contexts,
                     .contexts = &contexts,
                     .deadlines = &deadlines,
                     .gatherings = &gatherings,
                     .published = &published,
                     .node = this,
                     .states = &states,
                     .checkpoints = environment.checkpoints,
                     .devices = &devices});
  gatherings.mailboxes().set_carriers(environment.carriers);
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
  sessions.set_on_tick([this] { group->on_tick(); });
  sessions.set_on_read([this](WorkerId peer) { served.on_read(peer); });
  sessions.set_on_link([this](WorkerId peer) { group->on_link(peer); });
  rrefs.set_on_progress([this] { progressed(); });
  contexts.set_on_progress([this] { progressed(); });
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

UniqueFunction<void(const Error&)> NodeParts::await_member(WorkerId peer,
                                                           const std::optional<Instant>& deadline,
                                                           const WaitHandle& wait, Status& came) {
  struct Limit {
    uint64_t task = 0;
    DeadlineId deadline;
    bool over = false;
  };
  auto limit = std::make_shared<Limit>();
  limit->task = group->when_here(peer, [this, wait, limit] {
    if (std::exchange(limit->over, true) || !wait.lasts()) return;
    deadlines.remove(limit->deadline);
    wait.end();
  });
  const auto fail = [this, wait, &came, limit](const Error& why) {
    if (std::exchange(limit->over, true)) return;
    deadlines.remove(limit->deadline);
    group->forget_task(limit->task);
    if (!wait.lasts()) return;
    came = why;
    wait.end();
  };
  if (!deadline || limit->over) return fail;
  limit->deadline = deadlines.add(*deadline, [this, peer, fail] {
    const std::string& name = options.names[peer.value];
    const MaybeError& lost = sessions.lost(peer);
    fail({.kind = ErrorKind::timeout,
          .text = "worker '" + name + "' has not come in time" + (lost ? ": " + lost->text : ""),
          .worker = name});
  });
  return fail;
}

// ---- messages ---------------------------------------------------------------

void NodeParts::on_message(WorkerId from, Message&& message) {
  if (ended) return;
  if (const std::optional<Violation> violation = sessions.judge(from, message)) [[unlikely]]
    return sessions.accuse(from, *violation);
  route(from, message);
  progressed();
}

struct NodeParts::Router {
  NodeParts& node;
  WorkerId from;

  // One that comes when all have ended would hold this worker by what it refers to.
  void operator()(Call& call) const {
    if (!node.group->takes_calls()) return node.strand->mark("a call came when all had ended");
    node.served.on_call(from, std::move(call));
  }
  void operator()(Response& response) const { node.pending.on_response(from, std::move(response)); }
  void operator()(Cancel& cancel) const { node.served.on_cancel(from, cancel); }
  void operator()(Item& item) const { node.pending.on_item(from, std::move(item)); }
  void operator()(Credit& credit) const { node.served.on_credit(from, credit); }
  void operator()(End& end) const { node.pending.on_end(from, std::move(end)); }
  void operator()(ForkRequest& request) const { node.rrefs.on_fork_request(from, request); }
  void operator()(ForkConfirm& confirm) const { node.rrefs.on_fork_confirm(from, confirm); }
  void operator()(ChildAccept& accept) const { node.rrefs.on_child_accept(from, accept); }
  void operator()(UserDelete& user_delete) const { node.rrefs.on_user_delete(from, user_delete); }
  void operator()(ContextReached& reached) const { node.contexts.on_reached(from, reached); }
  void operator()(ContextRelease& release) const { node.contexts.on_release(from, release); }
  void operator()(Gradients& gradients) const {
    node.contexts.on_gradients(from, std::move(gradients));
  }
  void operator()(GradientsAnswered& answered) const { node.contexts.on_answered(from, answered); }
  void operator()(Marks& marks) const { node.contexts.on_marks(from, marks); }
  void operator()(MarksAnswered& answered) const {
    node.contexts.on_marks_answered(from, answered);
  }
  void operator()(PassFinish& finish) const { node.contexts.on_finish(from, finish); }
  void operator()(PassFinished& finished) const { node.contexts.on_finished(from, finished); }
  void operator()(PassFailed& failed) const { node.contexts.on_failed(from, failed); }
  void operator()(LoansReturned& returned) const { node.sessions.on_returned(from, returned); }
  void operator()(Goodbye& goodbye) const {
    (void)node.group->on_message(from, Message{goodbye});
    node.sessions.fence(from, {.kind = ErrorKind::peer_lost,
                               .text = "worker '" + node.options.names[from.value] +
                                       "' has ended: " + goodbye.error.text,
                               .worker = node.options.names[from.value]});
  }
  template <class Other>
  void operator()(Other& other) const {
    const Message message{std::move(other)};
    if (node.group->on_message(from, message)) return;
    node.sessions.accuse(from, {message_name(message.type()), "is no message of this group"});
  }
};

void NodeParts::route(WorkerId from, Message& message) {
  const bool of_shutdown = std::holds_alternative<ShutdownProbe>(message.content) ||
                           std::holds_alternative<ShutdownReport>(message.content);
  if (!of_shutdown) ++activity_;
  std::visit(Router{*this, from}, message.content);
}

bool NodeParts::may_have_left(WorkerId peer) const { return group->may_have_left(peer); }

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
  if (ended) return;
  if (released_) look_for_late_references();
  group->progressed();
}

// ---- life -------------------------------------------------------------------

bool NodeParts::is_busy() const {
  return pending.size() > 0 || served.size() > 0 || strand->continuations() > 0 ||
         contexts.pass_count() > 0 || contexts.running_walks() > 0;
}

bool NodeParts::quiet(uint32_t phase) const {
  const bool counts = !session_options.mutants.on(Mutant::shutdown_counts_own_calls_only);
  const bool idle = !(is_busy() && counts) && sessions.all_acknowledged();
  if (phase == 0 || !idle) return idle;
  return contexts.size() == 0 && rrefs.owner_count() == 0 && rrefs.user_count() == 0 &&
         rrefs.pending_child_count() == 0;
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
  return rrefs.user_count() == 0 && rrefs.pending_child_count() == 0 &&
         sessions.all_acknowledged() && strand->continuations() == 0;
}

Status NodeParts::make_states() {
  const std::vector<StateMaker>& makers = program.members()[options.id.value].states;
  if (makers.empty()) return Unit{};
  auto made = run_user_code(worker.name(), "state", [&] { states.make(makers, worker); });
  if (!made.ok()) return made.error();
  return Unit{};
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
  // A worker that leaves publishes nothing more: nobody waits for it in vain.
  if (program.is_dynamic() && program.members()[options.id.value].main)
    strand->post([this] {
      published.publish_no_more({.kind = ErrorKind::peer_lost,
                                 .text = "worker '" + strand->name() + "' leaves the group",
                                 .worker = strand->name()});
    });
  const Status waited = strand->wait("the end of the shutdown", {}, [&](WaitHandle wait) {
    strand->count_releases();
    group->shut_down(options.shutdown_timeout, [&ended_well, wait](Status status) {
      if (!wait.lasts()) return;
      ended_well = std::move(status);
      wait.end();
    });
  });
  return waited.ok() ? ended_well : waited;
}

// A worker that serves and recovers is there for those that will come back.
Status NodeParts::outlived() {
  if (program.members()[options.id.value].restarts_max == 0) return Unit{};
  MaybeError lost;
  caller->visit_strand("who is lost", [&] {
    for (const WorkerId worker : sessions.lost_workers()) lost = sessions.unavailable(worker);
  });
  if (lost) return *lost;
  return Unit{};
}

// The error that the worker ends with. One that it may outlive is kept for its later lives.
Error NodeParts::consider_another_life(Error why) {
  if (!is_recoverable(why.kind)) return why;
  const uint32_t restarts_max = program.members()[options.id.value].restarts_max;
  starts_again = options.life < restarts_max;
  if (!starts_again) {
    if (restarts_max > 0)
      why.text += "; the worker has begun again " + std::to_string(restarts_max) + " times";
    return why;
  }
  if (environment.checkpoints == nullptr) return why;
  const Status kept = add_ended_life(*environment.checkpoints,
                                     {.life = options.life, .lost = why.worker, .why = why.text});
  if (!kept.ok()) why.text += "; and this could not be kept: " + kept.error().text;
  return why;
}

Status NodeParts::run_main() {
  const EngineThreads engine(options.devices);
  // Nobody calls a worker that has not joined: none is served before the states are made.
  const bool late = session_options.mutants.on(Mutant::state_made_late);
  Status made = late ? Unit{} : make_states();
  const std::optional<std::string>& unfit = devices.own_mistake();
  Status status =
      unfit ? Status(
                  Error{.kind = ErrorKind::bad_arguments, .text = *unfit, .worker = strand->name()})
            : join();
  // The failure is final if the others do not come at all, or nothing is left to be done.
  bool is_final = !status.ok() && status.error().kind == ErrorKind::timeout;
  if (late) made = make_states();
  if (!made.ok()) status = made;  // The others hear of it, now that they are met.
  if (status.ok()) {
    strand->post_always([this] {
      strand->trace().on_event({.kind = EventKind::execution_started,
                                .worker = options.id,
                                .id = main->started_by(),
                                .text = main->label()});
    });
    auto returned = run_user_code(
        worker.name(), "main",
        [&] {
          if (const Program::Main& main = program.members()[options.id.value].main) {
            main(worker);
            is_final = true;
          }
        },
        options.exception_witness ? &exceptions : nullptr);
    strand->post_always([this] {
      strand->trace().on_event({.kind = EventKind::execution_ended,
                                .worker = options.id,
                                .id = main->started_by(),
                                .text = main->label()});
    });
    if (!returned.ok()) {
      status = returned.error();
      status.error().exception.reset();
    } else if (!leaves_at_once) {
      status = shut_down();
      if (status.ok() && !is_final) status = outlived();
    }
  }
  if (strand->killed()) throw NodeKilled{};
  if (!status.ok() && !is_final) status = consider_another_life(status.error());
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
  if (const MaybeError leaked = status.ok() ? why_leaked() : std::nullopt) return *leaked;
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
  deadlines.remove(last_moment_);  // They have been.
  census_at_end = census();
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
  published.clear();
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
  published.clear();
  rrefs.clear();
  contexts.clear(strand->why_closed());
  deadlines.clear();
}

}  // namespace rehearsal
