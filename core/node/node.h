#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "core/base/checkpoints.h"
#include "core/base/device_lending.h"
#include "core/base/ids.h"
#include "core/base/peer_limits.h"
#include "core/base/result.h"
#include "core/base/runtime.h"
#include "core/base/stream_set.h"
#include "core/base/trace.h"
#include "core/base/transport.h"
#include "core/base/value_view.h"
#include "core/base/wait_view.h"

namespace rehearsal {

class GroupCarriers;
class NodeParts;
class Program;
struct Message;

// The options of one node; the same at every worker but for `id`, `incarnation` and `life`.
// `peer_timeout` and `heartbeat` may differ: workers tell each other how long they bear silence.
struct NodeOptions {
  WorkerId id;
  Incarnation incarnation;  // by incarnation_of; at most kWorkersMax names
  // How many lives this worker has had in its group before. Each needs its own: what a worker that
  // came back makes is told apart by it, wherever it goes, from what it made before.
  uint32_t life = 0;
  // Of worker 0 of a dynamic group, which founds it, when it comes again: the workers that were
  // there. It founds the group once more when it has heard of all of them, unless one is a member.
  // Empty: it does not, as no other life of any worker does.
  std::optional<std::vector<WorkerId>> founds_after = {};
  Seed seed;
  std::vector<std::string> names;  // of all workers, in rank order; its size is the world size
  DevicesHere devices;             // that its tensors can be on, beside the CPU
  // Workers that these can lend to; null: what is on devices goes to others by the host.
  std::shared_ptr<DeviceLending> lending = {};

  Duration rpc_timeout = std::chrono::seconds(60);   // of calls that name none; zero: none
  Duration peer_timeout = std::chrono::seconds(30);  // silence after which a peer is fenced
  // An idle link says so this often, or four times in the `peer_timeout` of its other end.
  Duration heartbeat = std::chrono::seconds(5);
  // A peer whose port has refused connections for so long has ended: it is fenced without waiting
  // for `peer_timeout`. Zero: refusals prove nothing, as where addresses are forwarded.
  Duration refusal_limit = std::chrono::milliseconds(1500);
  Duration join_timeout = std::chrono::seconds(300);     // for all workers to appear
  Duration shutdown_timeout = std::chrono::seconds(60);  // once all mains have ended
  uint64_t window_bytes = 64 * 1024 * 1024;  // unacknowledged bytes to a peer before calls wait
  uint64_t window_frames = 4096;             // the same in frames
  uint64_t marked_max = 1 << 16;  // tensors that one message of a pass marks, those of a call whole
  PeerLimits limits;              // what any one peer may make this node hold
  // Functions executing at once; nested calls, creations and what runs inline aside.
  uint32_t execution_limit = 1024;

  // Errors that exceptions thrown here become say where they were thrown (Error::trace): the
  // functions they passed through at workers with this option, the first to see it first, after
  // LibTorch's own backtrace if it is a c10::Error. That has addresses in it: with this option,
  // runs of one seed may differ in the bytes of errors.
  bool exception_traces = false;

  // Told of each exception of user code while it is being handled, with the error that it becomes;
  // null: nobody is. It changes nothing, neither the error nor the run.
  std::function<void(const Error&)> exception_witness;

  // Whether `run_main` fails, with rref_leaked, if references or autograd contexts were still held
  // when the group shut down: by globals, or by values that hold each other. They are released and
  // told (EventKind::reference_leaked) anyway, and the others see a worker that ended well.
  bool strict_leaks = false;

  // Test-only switches, by name: each leaves out one rule of the protocol (core/base/mutants.cc
  // lists them). An unknown name is refused by Node's constructor; in a product every name is.
  std::vector<std::string> mutants;
};

// How many of each thing a node holds: every table and timer of its parts. Numbers only, all of one
// type, so that whoever judges them can tell that none was forgotten.
struct NodeCensus {
  uint64_t pending_calls = 0;     // calls this node waits for
  uint64_t executions = 0;        // user functions running or queued, continuations included
  uint64_t waiting = 0;           // calls of others that only wait here: for a barrier, for a name
  uint64_t owners = 0;            // values that remote references own here
  uint64_t shared_owners = 0;     // of them, those that other workers refer to
  uint64_t owner_forks = 0;       // forks registered at those owners
  uint64_t owner_handles = 0;     // local handles of those owners
  uint64_t users = 0;             // UserRRefs
  uint64_t pending_users = 0;     // of them, not confirmed
  uint64_t pending_children = 0;  // forks whose child has not accepted
  uint64_t published = 0;         // references that have a name here
  uint64_t contexts = 0;          // autograd contexts
  uint64_t send_functions = 0;    // that the autograd contexts hold
  uint64_t passes = 0;            // backward passes
  uint64_t unacknowledged = 0;    // frames kept for resending, messages that wait for room included
  uint64_t shutdown_frames = 0;   // of them, those of the shutdown
  uint64_t timers = 0;            // deadlines of calls, passes and waits
  uint64_t loose_timers = 0;      // of them, those that may outlast whoever wanted them
  uint64_t parked = 0;            // stacks that wait for something
  uint64_t lookups = 0;           // for names that nothing has yet
  uint64_t gatherings = 0;        // of which this is the first member, and not all have come
  uint64_t cancelled_makers = 0;  // executions that may call no more: nobody waits for them
  uint64_t given_up_calls = 0;    // of others, while the values of their functions are to come
  uint64_t early_cancels = 0;     // cancellations whose calls may still come
  uint64_t awaited_values = 0;    // that nobody has created yet
  uint64_t late_releases = 0;     // of contexts, until the calls in them have arrived
  uint64_t awaited_members = 0;   // tasks that wait for a worker to come
  uint64_t loans = 0;             // tensors on devices that living peers have borrowed
  // What counts for a peer of all that: references, uses, arguments, contexts, passes and sends, so
  // far as PeerLimits bounds them.
  uint64_t tallied = 0;
};

// The running instance of a worker: owns all its protocol state, by value. Everything but
// `run_main` is called on the strand of the Runtime that it was given.
class Node {
 public:
  // The parts that a node is built from. All of them outlive the node.
  struct Environment {
    std::shared_ptr<Runtime> runtime;
    const Executions* executions = nullptr;
    Transport* transport = nullptr;
    Trace* trace = nullptr;
    Checkpoints* checkpoints = nullptr;  // null: this worker has no place for any
    GroupCarriers* carriers = nullptr;   // null: calls carry all that process groups do
  };

  Node(NodeOptions options, const Program& program, Environment environment);
  ~Node();  // REQUIRES: ended(), and no execution of this node runs.
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Give it to the transport before `run_main`.
  [[nodiscard]] FrameSink& sink();

  // The Hello that the Transport gives to peers: name, versions, fingerprint of the registry.
  [[nodiscard]] Hello hello() const;

  // The execution that `run_main` is: whoever provides the stack sets it as the running one.
  [[nodiscard]] Execution& main_execution();

  // The worker's whole life, on the calling stack: joins the group, runs the program's function of
  // this worker, and shuts down (gracefully; at once if the function threw). Returns why it
  // failed, if so. Throws NodeKilled if the node was killed. Parks.
  [[nodiscard]] Status run_main();

  // Ends the node at once: every wait fails with `why`, peers are told goodbye. Harmless when
  // ended.
  void abort(const Error& why);

  // Ends the node as a crash does: from now on nothing it does has any effect and nobody is told.
  // Its stacks unwind by NodeKilled, which the Runtime raises (park answers `killed`).
  void kill();

  // Destroys what user code has left here, values and states, each in an execution of its own. It
  // has ended or was killed, and no execution of it runs. Without it the destructor of the node
  // does so, the states on the calling thread: there what a destructor lets out ends the process.
  void let_go();

  // Takes `peer` for dead at once, as if nothing had been heard of it for peer_timeout: for those
  // who learn of a death in another way. Nothing if it is lost already or this node has ended.
  void give_up(WorkerId peer);

  // Says anything to `to`, true or not, as a worker does that does not keep to the protocol: for
  // those who test what others make of it. Nothing if `to` is lost or this node has ended.
  void say(WorkerId to, Message message);

  // The most that any one peer has made this node hold, of each thing that has a limit.
  [[nodiscard]] PeerPeaks peaks() const;

  // After `run_main`: whether the main has asked to leave at once, so that no shutdown was tried.
  [[nodiscard]] bool left_at_once() const;

  // After `run_main` has failed: whether the program wants another life of this worker.
  [[nodiscard]] bool starts_again() const;

  // True after shutdown, abort or kill: no table holds anything but what unwinding stacks hold.
  [[nodiscard]] bool ended() const;

  [[nodiscard]] NodeCensus census() const;

  // For oracles: what it was when the node ended, before the end cleared the tables; none before
  // that, and after a kill.
  [[nodiscard]] const std::optional<NodeCensus>& census_at_end() const;

  // The things owned, held and waited for, and by whom, for people: a line each.
  [[nodiscard]] std::string debug_info() const;

  // For oracles: of each peer that owes any.
  [[nodiscard]] std::vector<OwedAcknowledgement> owed_acknowledgements() const;

  // For oracles: a line for each table invariant that does not hold; empty if all do.
  [[nodiscard]] std::string check_invariants() const;

  // For oracles: who waits for what at this node.
  [[nodiscard]] WaitViews waits() const;

  // For oracles: how many executions wait in primitives of the program's, as a mutex.
  [[nodiscard]] uint64_t code_waits() const;

  // For oracles: how long it takes until the last of those pauses of the program's own (`sleep`,
  // `after`, the delay of a batch) is over that are at least so long from beginning to end; zero:
  // there is none.
  [[nodiscard]] Duration pause_left(Duration at_least) const;

  // For oracles: the worker's state of exactly this type, if it has one, then the values of this
  // type that references own here, in the order of their references' ids.
  [[nodiscard]] ValueViews values(std::type_index type) const;

 private:
  std::unique_ptr<NodeParts> parts_;
};

}  // namespace rehearsal
