// Those who carry a run out: the simulator and the real network, or what a test puts in their
// place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/coverage_text.h"
#include "command_line/outcome.h"

namespace rehearsal::command_line {

// Which real worker a process is, and where it meets the others. The rest comes from the
// environment.
struct WorkerPlace {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> world_size;
  std::optional<std::string> rendezvous;  // env://, tcp://host:port or file:///path
  // How it is seen (real_net/worker/observers.h); empty: as the environment says.
  std::string metrics = {}, spans = {}, log = {};
  // HOST:PORT; empty: as real::WorkerOptions says.
  std::string listen = {}, advertise = {};
  std::string run_id = {};  // the same
  std::string auth = {};    // the same
  // The descriptor of a socket that listens at the rendezvous already, if rank 0 was given one.
  std::optional<int> listening = {};
};

// The state of an exploration.
struct ExploreProgress {
  size_t fault_sets = 0;  // that are explored
  size_t fault_sets_all = 0;
  uint64_t schedules = 0;
  double part = 0;  // of the present fault set, as far as is known
};

struct ExploreOutcome {
  struct Row {
    std::string faults;  // empty: none
    uint64_t schedules = 0;
    uint64_t stopped = 0;
    uint64_t steps = 0;
  };
  std::vector<Row> rows;
  CoverageCounts coverage = {};  // if it was asked for; runs that were stopped count too
  bool complete = false;
  std::string schedule;                    // of the run that fails, made small
  std::optional<sim::RunFailure> failure;  // of that run
};

// The strategy of a seed that goes on from an earlier run instead of being run itself.
inline constexpr std::string_view kGuided = "guided";

struct Backends {
  // A whole cluster in this process; with a schedule in the settings, that run of an exploration.
  // An error of the run is in the outcome.
  std::function<RunOutcome(const RunSettings&, Reporter&)> simulate;

  // One real worker in this process, from rendezvous to shutdown.
  std::function<RunOutcome(const RunSettings&, const WorkerPlace&, Reporter&)> serve;

  // Instead: tells the others of its group, and its launcher, why this worker will not come. Null:
  // there are none.
  std::function<void(const WorkerPlace&, const std::string& why)> refuse = nullptr;

  // Names that --strategy knows; the first is the default.
  std::vector<std::string> strategies;

  // The strategy that a hunt gives this seed unless told otherwise; empty: the default one;
  // `guided`: it goes on from an earlier run.
  std::function<std::string(Seed)> portfolio;

  // Names that --network and --without know.
  std::vector<std::string> networks;
  std::vector<std::string> fault_classes;

  // Names that --mutant knows; none in a product.
  std::vector<std::string> mutants;

  // Throws std::invalid_argument with one line if this is no NAME[:k=v,…] of a strategy, or no
  // SALT/N of a redraw; null: what is behind a name is not looked at.
  std::function<void(const std::string&)> check_strategy;
  std::function<void(const std::string&)> check_redraw;

  // Throws std::invalid_argument with one line if these settings' schedule is none; may be null.
  std::function<void(const RunSettings&)> check_schedule;
  // The same for the faults that an exploration is limited to.
  std::function<void(const RunSettings&)> check_faults;

  // Every schedule of a small cluster, until `go_on` says no; see sim/explore/explorer.h.
  std::function<ExploreOutcome(const RunSettings&,
                               const std::function<bool(const ExploreProgress&)>& go_on)>
      explore;
};

// The simulator and the real network.
[[nodiscard]] Backends shipped_backends();

}  // namespace rehearsal::command_line
