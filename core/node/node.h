#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/checkpoints.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/runtime.h"
#include "core/base/trace.h"
#include "core/base/transport.h"
#include "core/base/wait_view.h"

namespace rehearsal {

class Program;
class NodeParts;

// The options of one node; the same at every worker but for `id`, `incarnation` and `life`.
struct NodeOptions {
  WorkerId id;
  Incarnation incarnation;
  // How many lives this worker has had in its group before. Each needs its own: what a worker that
  // came back makes is told apart by it, wherever it goes, from what it made before.
  uint32_t life = 0;
  Seed seed;
  std::vector<std::string> names;  // of all workers, in rank order; its size is the world size

  Duration rpc_timeout = std::chrono::seconds(60);       // of calls that name none; zero: none
  Duration peer_timeout = std::chrono::seconds(30);      // silence after which a peer is fenced
  Duration heartbeat = std::chrono::seconds(5);          // an idle link says so this often
  Duration join_timeout = std::chrono::seconds(300);     // for all workers to appear
  Duration shutdown_timeout = std::chrono::seconds(60);  // once all mains have ended
  uint64_t window_bytes = 64 * 1024 * 1024;  // unacknowledged bytes to a peer before calls wait
  uint64_t window_frames = 4096;             // the same in frames
  uint32_t execution_limit = 1024;  // functions executing at once, nested calls and creations aside

  // Errors that exceptions thrown here become say where they were thrown (Error::trace): the
  // functions they passed through at workers with this option, the first to see it first, after
  // LibTorch's own backtrace if it is a c10::Error. That has addresses in it: with this option,
  // runs of one seed may differ in the bytes of errors.
  bool exception_traces = false;

  // Test-only switches, by name: each leaves out one rule of the protocol (core/session/mutants.cc
  // lists them). An unknown name is refused by Node's constructor; in a product every name is.
  std::vector<std::string> mutants;
};

// How many of each thing a node holds; all zero when it is quiet.
struct NodeCensus {
  uint64_t pending_calls = 0;     // calls this node waits for
  uint64_t executions = 0;        // user functions running or queued, continuations included
  uint64_t owners = 0;            // values that remote references own here
  uint64_t owner_forks = 0;       // forks registered at those owners
  uint64_t owner_handles = 0;     // local handles of those owners
  uint64_t users = 0;             // UserRRefs
  uint64_t pending_users = 0;     // of them, not confirmed
  uint64_t pending_children = 0;  // forks whose child has not accepted
  uint64_t contexts = 0;          // autograd contexts
  uint64_t passes = 0;            // backward passes
  uint64_t unacknowledged = 0;    // frames kept for resending
  uint64_t timers = 0;            // deadlines of calls, passes and waits
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

  // Takes `peer` for dead at once, as if nothing had been heard of it for peer_timeout: for those
  // who learn of a death in another way. Nothing if it is lost already or this node has ended.
  void give_up(WorkerId peer);

  // After `run_main`: whether the main has asked to leave at once, so that no shutdown was tried.
  [[nodiscard]] bool left_at_once() const;

  // True after shutdown, abort or kill: no table holds anything but what unwinding stacks hold.
  [[nodiscard]] bool ended() const;

  [[nodiscard]] NodeCensus census() const;

  // The things owned, held and waited for, and by whom, for people: a line each.
  [[nodiscard]] std::string debug_info() const;

  // For oracles: a line for each table invariant that does not hold; empty if all do.
  [[nodiscard]] std::string check_invariants() const;

  // For oracles: who waits for what at this node.
  [[nodiscard]] WaitViews waits() const;

 private:
  std::unique_ptr<NodeParts> parts_;
};

}  // namespace rehearsal
