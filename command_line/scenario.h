// A scenario: a distributed program with a name, options and a declared result. The command line
// lists, runs, hunts and verifies any of them; a program of your own becomes one by filling this
// struct.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command_line/options.h"
#include "command_line/results.h"
#include "core/api/program.h"
#include "core/base/ids.h"
#include "core/node/node.h"
#include "sim/cluster_options.h"
#include "sim/values.h"

namespace rehearsal {

// The faults of a simulated run.
struct ScenarioFaults {
  sim::FaultLevel faults = sim::FaultLevel::mild;
  int crashes = 0;  // workers that crash, at drawn moments
  int mad = 0;      // workers that also say what is not true; one at most
  sim::Restart restarts = sim::Restart::never;
  bool long_partitions = false;  // partitions that outlive `peer_timeout`
  bool long_pauses = false;      // the same of workers that stand still, and clocks that jump
};

// The news of a worker of a scenario for those who watch and those who compare. Use it from
// a worker's main only. Workers of one simulated cluster share one; results of real workers are
// merged, in rank order.
struct Reporter {
  std::function<void(const std::string&)> line;      // a line that stays: an epoch, an episode
  std::function<void(const std::string&)> progress;  // replaces the last one; on a terminal only
  Results results;
};

// One run of a scenario. All of it outlives the run.
struct ScenarioRun {
  const Options& options;
  Seed seed;
  Reporter& reporter;
  int devices = 0;  // that each worker has: simulated ones; only if the scenario uses devices
};

struct Scenario {
  std::string name;
  std::string summary;  // what it shows, in one line
  OptionTable options;

  // The program of this run; the same in every process. Throws WrongUse if the options do not fit
  // each other or what they name cannot be used.
  std::function<Program(const ScenarioRun&)> program;

  // The faults of a simulated run for which nobody asked for any; without this, `mild` and no more.
  std::function<ScenarioFaults(const Options&, Seed)> draw_faults;

  // Whether the results of a run without crashes depend on options and seed only, never on the
  // order of events or on faults. The simulator then compares them with those of a run without
  // faults.
  bool schedule_independent = false;

  // Whether its program places tensors on the devices of its workers, where these have some: then
  // it can be asked for simulated ones.
  bool uses_devices = false;

  // Whether its workers keep references until they shut down, on purpose. Else a simulated run
  // fails in which one does (sim::ClusterOptions::strict_leaks).
  bool allows_leaks = false;

  // Time-outs and limits of a simulated run's nodes other than the default; the same at all.
  std::function<void(NodeOptions&, const ScenarioFaults&, Seed)> adjust_node;

  // They must hold of the values that its workers serve after every step of a simulated run.
  std::vector<sim::NamedInvariant> invariants;

  // The fault in the results of a simulated run under these faults, if there is one.
  std::function<std::optional<std::string>(const Results&, const ScenarioFaults&)> verdict;
};

}  // namespace rehearsal
