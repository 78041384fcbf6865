#include "command_line/arguments.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include "command_line/check_command.h"
#include "command_line/collectives_flag.h"
#include "command_line/devices_flag.h"
#include "command_line/flag_values.h"
#include "command_line/flags.h"
#include "command_line/help_texts.h"
#include "command_line/hunt_ways.h"
#include "command_line/liveness_flags.h"
#include "command_line/replay_arguments.h"
#include "command_line/report_arguments.h"
#include "command_line/run_file.h"
#include "command_line/spin_flag.h"
#include "command_line/strategy_flag.h"
#include "command_line/suggestion.h"
#include "command_line/wrong_use.h"
#include "real_net/worker/observers.h"
#include "real_net/worker/record_place.h"
#include "sim/decisions/decision_words.h"
#include "sim/hunt/commit_seed.h"

namespace rehearsal::command_line {
namespace {

const std::vector<std::string> kCommands = {"list",    "run",    "hunt",  "merge",
                                            "shrink",  "replay", "check", "report",
                                            "explore", "verify", "worker"};

// Of a hunt for which neither scenarios nor their number of seeds were named.
constexpr Budget kTimeForAll{.amount = 60};

constexpr const char* kNoMutants =
    "this build has none; type ./dev build mutants, and build/mutants/rehearsal instead";

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

class Parser {
 public:
  Parser(const std::string& command, const std::vector<Scenario>& scenarios,
         const Backends& backends)
      : command_(command),
        scenarios_(scenarios),
        backends_(backends),
        app_("", "rehearsal " + command) {}

  ParsedCommand parse(std::vector<std::string> words) {
    declare_flags(app_, flags_, command_, backends_);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    try {
      app_.parse(words);
    } catch (const CLI::CallForHelp&) {
      return {ShowHelp{app_.help()}, false};
    } catch (const CLI::ExtrasError&) {
      throw WrongUse(describe_extra());
    } catch (const CLI::ParseError& error) {
      throw WrongUse(std::string(error.what()) + "; type rehearsal " + command_ + " --help");
    }
    return {command(), flags_.json};
  }

 private:
  std::string describe_extra() const;

  decltype(ParsedCommand::command) command() const;
  RunCommand run_command() const;
  HuntCommand hunt_command() const;
  std::vector<RunSettings> all_scenarios() const;
  uint64_t first_seed(uint64_t seeds_max) const;
  void take_shard(HuntCommand& command) const;
  MergeCommand merge_command() const;
  ShrinkCommand shrink_command() const;
  ExploreCommand explore_command() const;
  VerifyCommand verify_command() const;
  WorkerCommand worker_command() const;

  RunSettings settings_of(const std::string& name, const std::string& default_size) const;
  void take_record(RunSettings& settings) const;
  void check_known(const std::string& flag, const std::string& word,
                   const std::vector<std::string>& known) const;
  const std::string& only_name() const;

  std::string command_;
  const std::vector<Scenario>& scenarios_;
  const Backends& backends_;
  CLI::App app_;
  Flags flags_;
};

// CLI11 only says that something was not expected; the line says what to type instead.
std::string Parser::describe_extra() const {
  const std::vector<std::string> extras = app_.remaining();
  const std::string extra = extras.empty() ? "" : extras.front();
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  if (!extra.starts_with("-"))
    return "'" + extra + "' was not expected; type rehearsal " + command_ + " --help";
  const auto near = nearest(extra, known);
  return "no flag " + extra + "; " +
         (near ? "did you mean " + *near + "?" : "type rehearsal " + command_ + " --help");
}

decltype(ParsedCommand::command) Parser::command() const {
  if (command_ == "run") return run_command();
  if (command_ == "hunt") return hunt_command();
  if (command_ == "merge") return merge_command();
  if (command_ == "shrink") return shrink_command();
  if (command_ == "explore") return explore_command();
  if (command_ == "verify") return verify_command();
  if (command_ == "worker") return worker_command();
  if (flags_.mutant_list && backends_.mutants.empty())
    throw WrongUse(std::string("--mutants: ") + kNoMutants);
  return ListCommand{flags_.mutant_list};
}

void Parser::check_known(const std::string& flag, const std::string& word,
                         const std::vector<std::string>& known) const {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw WrongUse(flag + " " + word + ": " + suggestion(word, known));
}

const std::string& Parser::only_name() const {
  if (flags_.names.empty()) {
    throw WrongUse("name a scenario; 'rehearsal list' shows them");
  }
  if (flags_.names.size() > 1) {
    throw WrongUse("one scenario at a time, not '" + flags_.names[1] +
                   "' as well; 'hunt' takes several");
  }
  return flags_.names.front();
}

RunSettings Parser::settings_of(const std::string& name, const std::string& default_size) const {
  RunSettings settings;
  settings.scenario = &find_scenario(scenarios_, name);
  settings.options = settings.scenario->options.parse(flags_.set, default_size);
  if (!flags_.seed.empty()) {
    settings.seed =
        Seed{parse_whole("--seed", flags_.seed, 0, std::numeric_limits<uint64_t>::max())};
  }
  if (!flags_.net.empty()) settings.net = parse_net(flags_.net);
  if (!flags_.faults.empty()) settings.faults = parse_faults(flags_.faults);
  if (!flags_.crashes.empty()) {
    settings.crashes = static_cast<int>(parse_whole("--crashes", flags_.crashes, 0, 1000));
  }
  if (!flags_.mad.empty()) settings.mad = static_cast<int>(parse_whole("--mad", flags_.mad, 0, 1));
  const bool are_processes = command_ == "worker" || settings.net == Net::tcp;
  settings.devices = parse_devices(flags_.devices, are_processes, *settings.scenario, scenarios_);
  if (!flags_.restarts.empty()) settings.restarts = parse_restarts(flags_.restarts);
  settings.checkpoints = flags_.checkpoints;
  if (!flags_.partitions.empty())
    settings.long_partitions = parse_length("--partitions", flags_.partitions);
  if (!flags_.pauses.empty()) settings.long_pauses = parse_length("--pauses", flags_.pauses);
  if (!flags_.network.empty()) check_known("--network", flags_.network, backends_.networks);
  for (const std::string& fault : flags_.without)
    check_known("--without", fault, backends_.fault_classes);
  settings.network = flags_.network;
  settings.without = flags_.without;
  if (!flags_.strategy.empty())
    settings.strategy = checked_strategy(command_, flags_.strategy, backends_);
  for (const std::string& redraw : flags_.redraws) check_redraw(redraw, backends_);
  settings.redraws = flags_.redraws;
  for (const std::string& mutant : flags_.mutants) {
    if (backends_.mutants.empty()) throw WrongUse("--mutant " + mutant + ": " + kNoMutants);
    check_known("--mutant", mutant, backends_.mutants);
  }
  if (!flags_.watchdog.empty()) settings.watchdog = parse_watchdog(flags_.watchdog);
  if (!flags_.virtual_time_max.empty())
    settings.virtual_time_max = parse_virtual_time_max(flags_.virtual_time_max);
  if (!flags_.crash_at.empty()) settings.crash_at = parse_crash_at(flags_.crash_at);
  settings.benign = flags_.benign;
  settings.mutants = flags_.mutants;
  settings.trace_file = flags_.trace;
  // The files that options name are looked at now, so that a bad file is wrong usage and not a
  // failed run.
  const std::vector<std::string> workers = worker_names(settings);
  try {
    for (const std::string& decision : flags_.decisions)
      settings.decisions.push_back(sim::parse_override(sim::with_numbers(decision, workers)));
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--decide: ") + wrong.what());
  }
  return settings;
}

void Parser::take_record(RunSettings& settings) const {
  settings.record_folder = flags_.record;
  if (!flags_.record.empty() && settings.net == Net::sim)
    throw WrongUse("--record " + flags_.record + " needs --net tcp: a simulated run is repeated " +
                   "by its seed");
  if (flags_.record_size.empty()) return;
  settings.record_bytes = real::parse_record_size(flags_.record_size);
  if (!settings.record_bytes)
    throw WrongUse("--record-size " + flags_.record_size +
                   ": type a size from 4K to 4G, for example 64M");
}

RunCommand Parser::run_command() const {
  RunCommand command{settings_of(only_name(), "full"), flags_.compare, flags_.junit};
  command.settings.spans_file = flags_.spans;
  command.settings.exception_traces = flags_.exception_traces;
  take_record(command.settings);
  command.settings.liveness = parse_liveness(flags_, command.settings.net);
  command.settings.collectives = parse_collectives(flags_, command.settings);
  command.settings.spin = parse_spin(flags_, command.settings.net);
  if (command.settings.net == Net::sim) {
    if (!flags_.checkpoints.empty())
      throw WrongUse(
          "--checkpoints " + flags_.checkpoints +
          ": simulated machines have disks of their own; type --net tcp, or leave it out");
    return command;
  }
  const bool faults = command.settings.faults && *command.settings.faults != sim::FaultLevel::none;
  const std::vector<std::pair<std::string, bool>> simulated_only = {
      {"--faults " + flags_.faults, faults},
      {"--crashes " + flags_.crashes, command.settings.crashes.value_or(0) > 0},
      {"--mad " + flags_.mad, command.settings.mad.value_or(0) > 0},
      {"--restarts " + flags_.restarts, !flags_.restarts.empty()},
      {"--crash-at " + flags_.crash_at, command.settings.crash_at.has_value()},
      {"--partitions " + flags_.partitions, !flags_.partitions.empty()},
      {"--pauses " + flags_.pauses, !flags_.pauses.empty()},
      {"--network " + flags_.network, !flags_.network.empty()},
      {"--without", !flags_.without.empty()},
      {"--strategy " + flags_.strategy, !flags_.strategy.empty()},
      {"--redraw", !flags_.redraws.empty()},
      {"--decide", !flags_.decisions.empty()},
      {"--benign", flags_.benign},
      {"--watchdog " + flags_.watchdog, !flags_.watchdog.empty()},
      {"--virtual-time-max " + flags_.virtual_time_max, !flags_.virtual_time_max.empty()},
      {"--trace " + flags_.trace, !flags_.trace.empty()}};
  for (const auto& [flag, given] : simulated_only) {
    if (given) throw WrongUse(flag + " needs the simulator: type --net sim, or leave it out");
  }
  return command;
}

uint64_t Parser::first_seed(uint64_t seeds_max) const {
  if (!flags_.first_seed.empty() && !flags_.commit.empty())
    throw WrongUse("--first-seed and --commit: type one of them");
  if (!flags_.first_seed.empty()) {
    return parse_whole("--first-seed", flags_.first_seed, 0,
                       std::numeric_limits<uint64_t>::max() - seeds_max);
  }
  if (flags_.commit.empty()) return 1;
  try {
    return sim::seed_of_commit(flags_.commit).value;
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--commit: ") + wrong.what());
  }
}

void Parser::take_shard(HuntCommand& command) const {
  if (flags_.shard.empty()) return;
  const std::string flag = "--shard " + flags_.shard;
  const size_t slash = flags_.shard.find('/');
  if (slash == std::string::npos) throw WrongUse(flag + ": type I/N, for example 0/4");
  command.shard_count =
      parse_whole(flag + ": number of parts", flags_.shard.substr(slash + 1), 1, 1'000'000);
  command.shard =
      parse_whole(flag + ": part", flags_.shard.substr(0, slash), 0, command.shard_count - 1);
}

HuntCommand Parser::hunt_command() const {
  HuntCommand command;
  command.crash_sweep = flags_.crash_sweep;
  for (const std::string& name : flags_.names)
    command.scenarios.push_back(settings_of(name, "tiny"));
  if (flags_.names.empty()) command.scenarios = all_scenarios();
  if (!flags_.seeds.empty() && !flags_.time.empty()) {
    throw WrongUse("--seeds and --for: type one of them");
  }
  constexpr uint64_t kSeedsMax = 1'000'000'000'000;
  command.delay_bound = delay_bound_of(command.scenarios.front().strategy);
  if (command.crash_sweep && (command.delay_bound || flags_.strategy == kGuided))
    throw WrongUse("--crash-sweep and --strategy " + flags_.strategy + ": type one of them");
  if (command.crash_sweep && !flags_.time.empty()) {
    throw WrongUse("--crash-sweep and --for: a sweep runs to its end, type --seeds N instead");
  }
  const bool has_number = !flags_.seeds.empty() || command.crash_sweep || command.delay_bound;
  if (flags_.time.empty() && flags_.names.empty() && !has_number) {
    command.budget = kTimeForAll;
  } else if (flags_.time.empty()) {
    const uint64_t otherwise = command.crash_sweep || command.delay_bound ? 1 : 1000;
    command.seed_count =
        flags_.seeds.empty() ? otherwise : parse_whole("--seeds", flags_.seeds, 1, kSeedsMax);
  } else {
    command.budget = parse_budget("--for", flags_.time);
  }
  command.first_seed = first_seed(kSeedsMax);
  command.jobs = flags_.jobs.empty()
                     ? available_cores()
                     : static_cast<int>(parse_whole("--jobs", flags_.jobs, 1, 1024));
  take_shard(command);
  command.coverage = flags_.coverage;
  command.directory = flags_.directory;
  command.junit_file = flags_.junit;
  if (!flags_.shrink_time.empty())
    command.shrink_budget = parse_budget("--shrink-for", flags_.shrink_time);
  return command;
}

// Those that can be searched with the flags that were given, each in several ways.
std::vector<RunSettings> Parser::all_scenarios() const {
  std::vector<RunSettings> all;
  for (const Scenario& scenario : scenarios_) {
    if (!flags_.devices.empty() && !scenario.uses_devices) continue;
    const RunSettings settings = settings_of(scenario.name, "tiny");
    if (flags_.crash_sweep || delay_bound_of(settings.strategy))
      all.push_back(settings);
    else
      for (RunSettings& way : ways_of(settings)) all.push_back(std::move(way));
  }
  if (all.empty()) throw WrongUse("--devices " + flags_.devices + ": no scenario uses any");
  return all;
}

MergeCommand Parser::merge_command() const {
  if (flags_.names.empty())
    throw WrongUse("name the files that 'hunt --json' wrote, of all shards");
  return {flags_.names, flags_.junit};
}

ShrinkCommand Parser::shrink_command() const {
  ShrinkCommand command{.settings = settings_of(only_name(), "full"), .file = flags_.directory};
  if (!flags_.time.empty()) command.budget = parse_budget("--for", flags_.time);
  return command;
}

ExploreCommand Parser::explore_command() const {
  ExploreCommand command{.settings = settings_of(only_name(), "tiny"),
                         .directory = flags_.directory};
  command.settings.schedule = flags_.schedule;
  try {
    if (!flags_.schedule.empty() && backends_.check_schedule)
      backends_.check_schedule(command.settings);
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--schedule: ") + wrong.what());
  }
  command.settings.tell_coverage = flags_.coverage;
  if (flags_.coverage && !flags_.schedule.empty())
    throw WrongUse("--coverage does not go with --schedule, which is one run");
  command.settings.only_faults = flags_.only_faults;
  if (!flags_.only_faults.empty() && !flags_.schedule.empty())
    throw WrongUse("--only does not go with --schedule, which is one run with faults of its own");
  try {
    if (backends_.check_faults) backends_.check_faults(command.settings);
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--only: ") + wrong.what());
  }
  if (!flags_.time.empty()) command.budget = parse_budget("--for", flags_.time);
  if (!flags_.trace.empty() && flags_.schedule.empty())
    throw WrongUse("--trace " + flags_.trace + " needs --schedule: an exploration has many runs");
  return command;
}

VerifyCommand Parser::verify_command() const {
  VerifyCommand command;
  command.settings = settings_of(only_name(), "tiny");
  if (!flags_.seeds.empty())
    command.seed_count = parse_whole("--seeds", flags_.seeds, 1, 1'000'000);
  command.first_seed = first_seed(1'000'000);
  command.junit_file = flags_.junit;
  return command;
}

void check_address(const std::string& flag, const std::string& text, bool any_port) {
  if (text.empty()) return;
  const auto address = real::parse_address(text);
  if (!address || (address->port == 0 && !any_port))
    throw WrongUse(flag + " " + text + ": type HOST:PORT, for example 10.0.0.7:7000 or [::1]:7000");
}

WorkerCommand Parser::worker_command() const {
  WorkerCommand command;
  command.settings = settings_of(only_name(), "full");
  command.settings.net = Net::tcp;
  take_record(command.settings);
  command.settings.liveness = parse_liveness(flags_, command.settings.net);
  command.settings.collectives = parse_collectives(flags_, command.settings);
  command.settings.spin = parse_spin(flags_, command.settings.net);
  command.settings.exception_traces = flags_.exception_traces;
  constexpr uint32_t kWorkersMax = 1'000'000;
  const auto whole = [](const char* flag, const std::string& text, uint64_t min) {
    return static_cast<uint32_t>(parse_whole(flag, text, min, kWorkersMax));
  };
  if (!flags_.rank.empty()) command.place.rank = whole("--rank", flags_.rank, 0);
  if (!flags_.world_size.empty()) {
    command.place.world_size = whole("--world-size", flags_.world_size, 1);
  }
  if (!flags_.rendezvous.empty()) command.place.rendezvous = flags_.rendezvous;
  command.place.run_id = flags_.run_id;
  if (!flags_.metrics_port.empty() && !real::parse_metrics_address(flags_.metrics_port))
    throw WrongUse("--metrics-port " + flags_.metrics_port +
                   ": type a port or HOST:PORT, for example 9464");
  check_address("--listen", flags_.listen, /*any_port=*/true);
  check_address("--advertise", flags_.advertise, /*any_port=*/false);
  command.place.listen = flags_.listen;
  command.place.advertise = flags_.advertise;
  command.place.auth = flags_.auth;
  if (!flags_.log.empty())
    check_known("--log", flags_.log, {"debug", "info", "warn", "error", "off"});
  command.place.metrics = flags_.metrics_port;
  command.place.spans = flags_.spans;
  command.place.log = flags_.log;
  return command;
}

// `shrink FILE …` goes on from a run that was written down: FILE stands for what it holds.
std::vector<std::string> with_run_file(const std::vector<std::string>& words,
                                       const std::vector<Scenario>& scenarios) {
  std::vector<std::string> rest(words.begin() + 1, words.end());
  std::error_code no_file;
  if (rest.empty() || rest.front().starts_with("-") ||
      std::any_of(scenarios.begin(), scenarios.end(),
                  [&rest](const Scenario& scenario) { return scenario.name == rest.front(); }) ||
      !std::filesystem::is_regular_file(rest.front(), no_file))
    return rest;
  std::vector<std::string> run = read_run_file(rest.front());
  if (run.front() == "explore")
    throw WrongUse(rest.front() + ": holds a schedule of 'explore', which is small already; type " +
                   "rehearsal report " + rest.front());
  run.erase(run.begin());
  run.insert(run.end(), rest.begin() + 1, rest.end());
  return run;
}

}  // namespace

bool is_command(const std::string& word) {
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

ParsedCommand parse_arguments(const std::vector<std::string>& words,
                              const std::vector<Scenario>& scenarios, const Backends& backends) {
  if (words.empty()) {
    throw WrongUse(
        "name a command: list, run, hunt, merge, shrink, replay, check, report, explore, verify "
        "or worker; rehearsal --help explains them");
  }
  const std::string& command = words.front();
  if (command == "--help" || command == "-h" || command == "help")
    return {ShowHelp{kOverview}, false};
  if (!is_command(command)) {
    throw WrongUse("no command '" + command + "'; " + suggestion(command, kCommands));
  }
  if (command == "replay")
    return parse_replay({words.begin() + 1, words.end()}, scenarios, backends);
  if (command == "check") return parse_check({words.begin() + 1, words.end()}, scenarios, backends);
  if (command == "report")
    return parse_report({words.begin() + 1, words.end()}, scenarios, backends);
  Parser parser(command, scenarios, backends);
  if (command == "shrink") return parser.parse(with_run_file(words, scenarios));
  return parser.parse({words.begin() + 1, words.end()});
}

}  // namespace rehearsal::command_line
