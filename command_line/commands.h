// The commands, each with its arguments parsed and checked. Every function returns the exit status
// and may throw WrongUse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/backends.h"
#include "command_line/budget.h"
#include "command_line/outcome.h"
#include "record/record_file.h"

namespace rehearsal::command_line {

inline constexpr int kHolds = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUse = 2;
inline constexpr int kNondeterminism = 3;

// Words that start a child process of this binary; not for people.
inline constexpr const char* kChildCommand = "child";
inline constexpr const char* kWorkerChildCommand = "worker-child";

// The facts that every command knows.
struct Tool {
  std::string program;  // as the person typed it
  const std::vector<Scenario>& scenarios;
  const Backends& backends;
  bool json = false;
};

struct ListCommand {
  bool mutants = false;  // instead of scenarios
};
int list(const Tool& tool, const ListCommand& command);

struct RunCommand {
  RunSettings settings;
  std::string compare_file;  // empty: none
  std::string junit_file;    // the same
};
int run(const Tool& tool, const RunCommand& command);

struct HuntCommand {
  std::vector<RunSettings> scenarios;  // the seeds in them are not used
  uint64_t first_seed = 1;
  std::optional<uint64_t> seed_count;  // of each scenario; without: until `budget` is spent
  Budget budget;  // of all scenarios together; with a delay bound: of each seed
  int jobs = 1;
  bool coverage = false;     // it tells which pairs of sim/world/coverage.h came up
  bool crash_sweep = false;  // each run again with a crash at each event of each worker
  // Instead of drawn schedules every one with so many deviations from first come, first served, of
  // each seed.
  std::optional<uint64_t> delay_bound;
  uint64_t shard = 0;        // takes the seeds whose distance from the first leaves this rest …
  uint64_t shard_count = 1;  // … when divided by this
  std::string directory;     // for what a failure leaves; empty: none
  std::string junit_file;    // empty: none
  // That a failure may take to be shrunk; empty: it is reported as it was found.
  Budget shrink_budget{.unit = Budget::Unit::processor_seconds, .amount = 60};
};
int hunt(const Tool& tool, const HuntCommand& command);

struct MergeCommand {
  std::vector<std::string> files;  // outputs of `hunt --json`, one for each shard
  std::string junit_file;          // empty: none
};
int merge(const Tool& tool, const MergeCommand& command);

struct ShrinkCommand {
  RunSettings settings;  // of a run that fails
  Budget budget{.unit = Budget::Unit::processor_seconds, .amount = 60};
  std::string file;  // for what is left, as `replay` reads it; empty: none
};
int shrink(const Tool& tool, const ShrinkCommand& command);

struct ReportCommand {
  RunSettings settings;
  std::string file;           // that the settings were read from; empty: from a schedule
  std::string html_file;      // for the page; empty: none
  std::string perfetto_file;  // for the trace; empty: none
};
int report(const Tool& tool, const ReportCommand& command);

struct ReplayCommand {
  RunSettings settings;                          // of the run that was recorded
  std::string file;                              // that the record was read from
  std::string trace_file;                        // for all events; empty: none
  std::shared_ptr<const record::Record> record;  // of one of its workers
};
int replay(const Tool& tool, const ReplayCommand& command);

struct CheckCommand {
  std::vector<ReplayCommand> lives;  // of the workers of one run over TCP; at least one
};
int check(const Tool& tool, const CheckCommand& command);

struct ExploreCommand {
  RunSettings settings;   // faults and strategy in it are not used; with a schedule: only this one
  Budget budget;          // runs are schedules; empty: until all is explored
  std::string directory;  // for what a failure leaves; empty: none
};
int explore(const Tool& tool, const ExploreCommand& command);

struct VerifyCommand {
  RunSettings settings;  // the seed in it is not used
  uint64_t first_seed = 1;
  uint64_t seed_count = 20;
  std::string junit_file;  // empty: none
};
int verify(const Tool& tool, const VerifyCommand& command);

struct WorkerCommand {
  RunSettings settings;
  WorkerPlace place;
};
int worker(const Tool& tool, const WorkerCommand& command);

// A worker whose arguments are wrong tells the others of its group, who would wait for it.
void refuse_worker(const Tool& tool, const std::vector<std::string>& words, const std::string& why);

// The loop of a child of `hunt` and `verify`: simulates what it is asked to until no request is
// left. `scattered`: with other addresses; see scattered_memory.h.
int serve_requests(const Tool& tool, bool scattered);

// The worker that `run --net tcp` started: takes one request with its settings.
int serve_worker_request(const Tool& tool);

// Runs the workers of a real cluster as processes on this machine, and waits for them.
RunOutcome run_processes(const Tool& tool, const RunSettings& settings, Reporter& reporter);

// How a failed run ends: of a simulated one the way into a debugger, the failure in a line, then
// the command that repeats it, alone on the last line. On standard error if standard output is for
// JSON.
void print_failure(const Tool& tool, const RunSettings& settings, const sim::RunFailure& failure);

struct FailedRun {
  std::string scenario;
  uint64_t seed = 0;
  std::string replay;  // the command that repeats it
  Net net = Net::sim;
};
void print_failed_run(const Tool& tool, const FailedRun& run, const sim::RunFailure& failure);

}  // namespace rehearsal::command_line
