#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "sim/cluster_options.h"
#include "sim/explore/dpor.h"
#include "sim/run_report.h"

namespace rehearsal::sim::explore {

// One run of an exploration: which faults happen at some point of it, and the picks that are not
// the first candidate, the choices that are not 0. Written `cut:0,1;crash:2@3=1,7=2,7.0=1`: before
// the @ the faults, behind it step=place, or step.choice=value.
struct Schedule {
  struct Deviation {
    size_t step = 0;
    std::optional<size_t> choice;  // which one of the step; empty: the pick
    uint64_t value = 0;
    bool operator==(const Deviation&) const = default;
  };
  std::vector<Transition> faults;
  std::vector<Deviation> deviations;  // by step, the pick first
};
[[nodiscard]] std::string to_string(const Schedule& schedule);
// Throws std::invalid_argument with a line that says what is wrong. `workers`: how many there are.
[[nodiscard]] Schedule parse_schedule(std::string_view text, size_t workers);

// The faults of one run, written as before the @ of a schedule, or `none`. Throws as parse_schedule
// does.
[[nodiscard]] std::vector<Transition> parse_faults(std::string_view text, size_t workers);

struct ExploreOptions {
  // As in ClusterOptions; strategy, faults and crashes are not used.
  Seed seed{1};
  std::function<void(NodeOptions&)> adjust_node;
  std::vector<Trace*> traces;
  std::ostream* event_lines = nullptr;
  Coverage* coverage = nullptr;  // of the run that is under way
  HistorySink* history = nullptr;
  bool strict_leaks = true;                   // as in ClusterOptions
  size_t faults_max = 1;                      // of cuts, crashes and false suspicions in one run
  std::vector<std::vector<Transition>> only;  // these sets of faults instead; none: as above

  // Returns the failure of a run that ended well, if any.
  std::function<std::optional<RunFailure>(const Schedule&)> judge;
  // Called before each run.
  std::function<void()> before_run;

  // Called now and then, also in the middle of a run; false ends the exploration, and a run that is
  // under way counts for nothing.
  struct Progress {
    size_t fault_sets = 0;  // whose schedules are all run
    size_t fault_sets_all = 0;
    uint64_t schedules = 0;
    double part = 0;  // of the present fault set, as far as is known
  };
  std::function<bool(const Progress&)> go_on;
};

struct Exploration {
  struct Row {
    std::vector<Transition> faults;
    uint64_t schedules = 0;  // runs to the end, no two alike
    uint64_t stopped = 0;    // runs given up early: others cover them
    uint64_t steps = 0;
  };
  std::vector<Row> rows;
  bool complete = false;  // no schedule is left
  std::optional<Schedule> failing;
  RunReport report;  // of the failing run
  [[nodiscard]] uint64_t schedules() const;
};

// All sets of at most so many faults among so many workers, small ones first.
[[nodiscard]] std::vector<std::vector<Transition>> fault_sets(uint32_t workers, size_t size_max);

// The run that the search has made last.
[[nodiscard]] Schedule schedule_of(const std::vector<Transition>& faults, const Dpor& dpor);

// Runs every schedule of the program that differs in the order of dependent events, with at most so
// many faults at any point, from when all have joined until nothing is left to happen but timers
// and the shutdown (see Section). Ends at the first run that fails.
[[nodiscard]] Exploration explore(const Program& program, const ExploreOptions& options);

// Runs one of them. Deviations that name a candidate which is not there fail the run.
[[nodiscard]] RunReport run_schedule(const Program& program, const ExploreOptions& options,
                                     const Schedule& schedule);

// Fewer deviations with which a run still fails by the same oracle.
[[nodiscard]] Schedule shrink_schedule(const Program& program, const ExploreOptions& options,
                                       Schedule failing);

}  // namespace rehearsal::sim::explore
