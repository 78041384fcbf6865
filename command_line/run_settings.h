// Everything that decides a run, as the command line and the processes that it starts exchange it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command_line/scenario.h"

namespace rehearsal::command_line {

using Json = nlohmann::ordered_json;

enum class Net { sim, tcp };

// A crash of one worker just before its own event of this number, from 0.
struct CrashAt {
  std::string worker;
  uint64_t decision = 0;
};

// How soon real workers take another one for dead, as typed; empty: as the environment says.
struct LivenessTexts {
  std::string peer_timeout, heartbeat, refusal_limit;
};

struct RunSettings {
  const Scenario* scenario = nullptr;
  Options options;
  Seed seed{1};
  Net net = Net::sim;
  // Each, where it is given, takes the place of this part only of what the scenario draws.
  std::optional<sim::FaultLevel> faults;   // without: what the scenario draws, or mild
  std::optional<int> mad;                  // without: none
  std::optional<int> crashes;              // without: what the scenario draws, or none
  std::optional<sim::Restart> restarts;    // the same
  std::optional<bool> long_partitions;     // the same
  std::optional<bool> long_pauses;         // the same
  std::string devices;                     // of each simulated worker, or "drawn"; empty: none
  std::optional<CrashAt> crash_at;         // beside what else goes wrong
  std::string network;                     // a preset; empty: drawn with the faults
  std::vector<std::string> without;        // classes of faults that are left out
  std::string strategy;                    // NAME[:k=v,…]; empty: the default one
  std::vector<std::string> redraws;        // SALT/N: some choices are drawn anew, in this order
  std::string trace_file;                  // empty: none
  std::string spans_file;                  // of this process's runs; empty: none
  std::string choices_file;                // for what is chosen, as it is chosen; empty: none
  std::string history_file;                // for what explains the run; empty: none
  std::string checkpoints;                 // folder, of a real run; empty: none or a temporary one
  std::string record_folder;               // for what each real worker was given; empty: nowhere
  std::optional<uint64_t> record_bytes;    // of each of these records; without: the default
  LivenessTexts liveness;                  // of a real run
  std::string collectives;                 // of a real run: own or gloo; empty: as it says outside
  std::string spin;                        // of a real run: a time; empty: as it says outside
  std::vector<std::string> mutants;        // protocol rules left out; for tests of the oracles
  std::vector<sim::Override> decisions;    // choices that are given instead of drawn
  std::optional<double> watchdog;          // seconds; see sim/cluster_options.h; zero: off
  std::optional<double> virtual_time_max;  // the same
  std::string schedule;                    // of `explore`: the run is this one; empty: none
  std::vector<std::string> only_faults;    // of `explore`: runs with these only; empty: all
  bool benign = false;                     // every other choice is the benign one, not drawn
  bool exception_traces = false;           // a failure says where its exception was thrown
  bool record = false;                     // the outcome tells what was chosen
  bool tell_widths = false;                // and how many events each choice of the strategy was of
  bool tell_features = false;              // and what the run has shown
  bool tell_coverage = false;              // and which pairs came up

  // The faults of this run if it is simulated.
  [[nodiscard]] ScenarioFaults fault_plan() const;
  // How many devices each of its workers has then.
  [[nodiscard]] int device_count() const;
  // The program of this run, whose results go to `reporter`; all of this outlives it.
  [[nodiscard]] Program program(Reporter& reporter) const;
};

// The workers of this run's program, in the order of their numbers.
[[nodiscard]] std::vector<std::string> worker_names(const RunSettings& settings);

// The arguments of `rehearsal run`, or of `explore`, that repeat this run, without the program's
// name.
[[nodiscard]] std::vector<std::string> run_arguments(const RunSettings& settings);

// The first of such arguments (a command, a scenario, then flags) that is no flag of
// run_arguments() and no value of one, and so may make the tool write a file or start a process: of
// files that anybody may have written. Nothing if all are; `net` says which of the two worlds' runs
// they are.
[[nodiscard]] std::optional<std::string> foreign_argument(const std::vector<std::string>& arguments,
                                                          Net net);

// The command that repeats this run, quoted for a shell; `program` is what the person typed.
[[nodiscard]] std::string replay_command(const std::string& program, const RunSettings& settings);

// Whether every shell takes it: a run that is told by all of its decisions may have megabytes.
[[nodiscard]] bool fits_a_command(const std::string& command);

// The same of other arguments.
[[nodiscard]] std::string shell_command(const std::string& program,
                                        const std::vector<std::string>& arguments);

// For a child process of the same binary; `scenarios` gives the scenario back by its name.
[[nodiscard]] Json to_json(const RunSettings& settings);
[[nodiscard]] RunSettings settings_from_json(const Json& json,
                                             const std::vector<Scenario>& scenarios);

[[nodiscard]] const char* name_of(Net net);

// Of partitions and pauses: `long` ones may outlive `peer_timeout`.
[[nodiscard]] const char* name_of_length(bool is_long);

// Each throws WrongUse with the line that says what to type.
[[nodiscard]] sim::FaultLevel parse_faults(const std::string& text);
[[nodiscard]] sim::Restart parse_restarts(const std::string& text);
[[nodiscard]] bool parse_length(const std::string& flag, const std::string& text);
[[nodiscard]] Net parse_net(const std::string& text);
[[nodiscard]] const Scenario& find_scenario(const std::vector<Scenario>& scenarios,
                                            const std::string& name);

}  // namespace rehearsal::command_line
