#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/trace.h"
#include "core/node/node.h"
#include "net_fake/link_model.h"
#include "net_fake/presets.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategy.h"
#include "sim/values.h"
#include "sim/world/fault_classes.h"

namespace rehearsal::fibers {
class StackPool;
}

namespace rehearsal::sim {

class Coverage;
class HistorySink;

struct RunReport;

// The faults that happen by themselves, drawn from the seed. At every level each call still
// succeeds: mild delays, breaks, corrupts and refuses; hostile also partitions, clogs and pauses,
// for shorter than `peer_timeout`, slows workers and lets clocks jump.
enum class FaultLevel : uint8_t { none, mild, hostile };

// Whether a crashed worker comes back, as a new incarnation that runs its main from the beginning:
// with what it has saved in its checkpoints, with nothing of it (amnesia), or as each crash draws.
enum class Restart : uint8_t { never, amnesia, checkpoint, drawn };

// A crash of `worker` just before the event of its own with this number, from 0. Event numbers of a
// run without it are reported by WorkerReport::decisions.
struct CrashPoint {
  WorkerId worker;
  uint64_t decision = 0;
};

// How a program is run. The same seed and options give the same run, event by event.
struct ClusterOptions {
  StrategySettings strategy;  // the order of events
  FaultLevel faults = FaultLevel::mild;
  uint32_t crashes = 0;  // of workers and at moments that the seed draws
  // One worker, which the seed draws, also says what is not true, and crashes after the storm: any
  // well-formed message at any time. The oracles see the others only, and any main may fail.
  bool mad = false;
  int devices = 0;                  // simulated ones of each worker: see sim/simulated_devices.h
  bool long_partitions = false;     // also partitions that outlast `peer_timeout`
  bool long_pauses = false;         // also pauses and jumps of clocks that outlast `peer_timeout`
  std::vector<FaultClass> without;  // left out, whatever else is said
  // How links behave. Without: as the seed draws, or with faults none as `network.link` says.
  std::optional<net_fake::Preset> preset;
  Restart restart = Restart::never;
  std::vector<CrashPoint> crash_points;
  std::vector<Redraw> redraws;
  std::vector<Override> overrides;
  Otherwise otherwise = Otherwise::drawn;  // what has no override
  bool record_choices = false;             // for RunReport::choices and deviations
  bool profile = false;                    // for RunReport::counts

  // Faults come until this has passed; then all is healed and everything must finish.
  Duration storm = std::chrono::seconds(60);
  // For so long, after the storm, nothing need be seen to move forward. It counts from the end of
  // what is due by itself: pauses of the program of at least a quarter of it, and acts of the test.
  Duration progress_bound = std::chrono::seconds(400);
  // A run that lasts longer in virtual time has failed; zero: it may last for ever.
  Duration virtual_time_max = std::chrono::hours(24 * 7);

  // A run that has had no event for so long by the machine's clock hangs: the process ends with
  // exit status 1, after it has said which worker is in which function, and the stack. Zero: never.
  // In a debugger and under valgrind nothing is said; with sanitizers it takes ten times as long.
  Duration watchdog = std::chrono::seconds(10);

  // Asked after every few hundred events, where the machine's clock may be read: true gives the run
  // up, by a failure of the oracle `given up`. For a search whose time is over.
  std::function<bool()> give_up;

  // The failure of a main says where the exception behind it was thrown. Changes nothing in the
  // run, but to note the first exception takes a tenth of a second, further ones microseconds.
  bool exception_traces = false;

  // Called with what each node is about to be told.
  std::function<void(NodeOptions&)> adjust_node;
  net_fake::NetworkOptions network;

  // Whether a run fails if references or autograd contexts are still held when their worker shuts
  // down: by globals, or by values that hold each other. Without it they are in RunReport::leaks.
  bool strict_leaks = true;

  // The oracles that every run has; see sim/oracle.h.
  bool oracles = true;
  std::vector<NamedInvariant> invariants;  // as Cluster::add_invariant adds them
  // Tables are checked after every so many events of a worker; zero: only at the end.
  uint64_t check_interval = 16;
  // How a worker's main may fail once a worker has crashed, or long partitions or pauses were asked
  // for.
  std::vector<ErrorKind> errors_after_crash = {
      ErrorKind::timeout,      ErrorKind::peer_lost,    ErrorKind::fenced,  ErrorKind::cancelled,
      ErrorKind::node_stopped, ErrorKind::rref_deleted, ErrorKind::autograd};

  std::vector<Trace*> traces;           // hear every event of every node
  std::ostream* event_lines = nullptr;  // gets a line for each; see sim/world/event_lines.h
  // Gets each choice that is not benign as it is made, KEY=VALUE, also of a run that ends its
  // process; of one key the last one counts. Only with `record_choices`.
  std::ostream* choice_lines = nullptr;
  Coverage* coverage = nullptr;    // counts what came up; see sim/world/coverage.h
  HistorySink* history = nullptr;  // gets what explains the run; see sim/explain/history.h

  // Gets what is known of the run when its cluster goes, even if it has not been run to its end.
  RunReport* report = nullptr;

  // Stacks for the run's fibers; null: its own. One pool for many runs saves their making.
  fibers::StackPool* stacks = nullptr;

  // The command that repeats this run, for the message of a failure.
  std::string reproduction;
};

}  // namespace rehearsal::sim
