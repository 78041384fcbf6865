#include "scenarios/command_line/arguments.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>

#include "scenarios/command_line/report_arguments.h"
#include "scenarios/command_line/run_file.h"
#include "scenarios/command_line/strategy_flag.h"
#include "scenarios/suggestion.h"
#include "scenarios/wrong_use.h"
#include "sim/commit_seed.h"
#include "sim/decision_words.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kOverview =
    "rehearsal: the same distributed LibTorch program, simulated and over TCP\n"
    "\n"
    "  rehearsal list                   the scenarios, one line each\n"
    "  rehearsal run NAME               one run, in the simulator or as processes over TCP\n"
    "  rehearsal hunt NAME...           many seeds on all cores, until one fails\n"
    "  rehearsal merge FILE...          what all shards of one hunt found, as one result\n"
    "  rehearsal shrink NAME            a failing run made small: few decisions, least values\n"
    "  rehearsal replay FILE            the run that 'shrink --out FILE' has written down\n"
    "  rehearsal explore NAME           every order of messages of a small cluster\n"
    "  rehearsal report FILE            that run as text, as a page, as a trace for Perfetto\n"
    "  rehearsal verify NAME            every seed twice, in two different processes\n"
    "  rehearsal worker NAME            one real worker; rank and address from the environment\n"
    "\n"
    "rehearsal COMMAND --help lists the flags of a command.\n"
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify.\n";

const std::vector<std::string> kCommands = {"list",   "run",    "hunt",    "merge",  "shrink",
                                            "replay", "report", "explore", "verify", "worker"};

// What a command's help ends with.
const std::map<std::string, std::string> kExamples = {
    {"list", "  rehearsal list --json\n"},
    {"run",
     "  rehearsal run storm --seed 7 --faults hostile --crashes 1\n"
     "  rehearsal run rnn --network wan --without resets,partitions\n"
     "  rehearsal run rnn --net tcp --set size=tiny\n"},
    {"hunt",
     "  rehearsal hunt storm --seeds 2000 --faults hostile --crashes 1\n"
     "  rehearsal hunt rnn rl --for 10m --out found\n"
     "  rehearsal hunt storm --first-seed 7 --strategy delays:bound=1\n"
     "  rehearsal hunt storm --commit $(git rev-parse HEAD) --shard 0/4 --json > shard0.json\n"},
    {"merge", "  rehearsal merge shard0.json shard1.json --junit hunt.xml\n"},
    {"shrink",
     "  rehearsal shrink storm --seed 61 --set size=tiny --out failure.run\n"
     "  rehearsal shrink failure.run --for 5m --out failure.run    goes on from there\n"},
    {"explore",
     "  rehearsal explore rref_fork\n"
     "  rehearsal explore rref_fork --set use=1 --set faults=0 --for 5m\n"},
    {"verify",
     "  rehearsal verify storm --seeds 100\n"
     "  rehearsal verify rnn --set size=full --faults hostile --json\n"},
    {"worker",
     "  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 rehearsal worker rnn\n"}};

constexpr const char* kVerifyHelp =
    "Runs every seed in two processes, the second with other addresses, fill of memory, "
    "variables,\n"
    "locale, time zone, working folder and core, and with the seeds in reverse. Where runs differ, "
    "it\n"
    "names the first event that does, its key and what it follows from, and exits with status 3.\n";

constexpr const char* kExitStatus =
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify\n";

constexpr const char* kReplayHelp =
    "Usage: rehearsal replay FILE [--json]\n"
    "\n"
    "Runs what FILE says: the arguments of 'run', a flag on each line; lines that begin with #\n"
    "are for people. 'shrink --out FILE' and 'hunt --out DIRECTORY' write such files.\n"
    "\n"
    "Examples:\n"
    "  rehearsal replay found/failure.run\n"
    "\n"
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify\n";

// As typed; an empty text was not given.
struct Flags {
  std::vector<std::string> names;
  std::string seed, net, faults, crashes, partitions, pauses, network, strategy;
  std::vector<std::string> without;
  std::vector<std::string> set, mutants, decisions, redraws;
  std::string compare, trace, crash_at, schedule;
  std::string seeds, time, first_seed, commit, jobs, shard, directory, shrink_time, junit;
  std::string rank, world_size, rendezvous;
  bool crash_sweep = false;
  bool benign = false;
  bool json = false;
};

uint64_t parse_whole(const std::string& flag, const std::string& text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < min || number > max) {
    throw WrongUse(flag + " " + text + ": type a whole number from " + std::to_string(min) +
                   " to " + std::to_string(max));
  }
  return number;
}

CrashAt parse_crash_at(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw WrongUse("--crash-at " + text + ": type WORKER:N, for example trainer0:12");
  }
  return {text.substr(0, colon), parse_whole("--crash-at: N", text.substr(colon + 1), 0,
                                             std::numeric_limits<uint64_t>::max())};
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

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
    declare();
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
  void declare();
  void declare_run_flags();
  void declare_search_flags();
  void declare_explore_flags();
  void declare_mutants();
  void text_flag(const std::string& flag, std::string& value, const std::string& meaning) {
    app_.add_option(flag, value, meaning);
  }
  std::string describe_extra() const;

  decltype(ParsedCommand::command) command() const;
  RunCommand run_command() const;
  HuntCommand hunt_command() const;
  uint64_t first_seed(uint64_t seeds_max) const;
  void take_shard(HuntCommand& command) const;
  MergeCommand merge_command() const;
  ShrinkCommand shrink_command() const;
  ExploreCommand explore_command() const;
  VerifyCommand verify_command() const;
  WorkerCommand worker_command() const;

  RunSettings settings_of(const std::string& name, const std::string& default_size) const;
  void check_known(const std::string& flag, const std::string& word,
                   const std::vector<std::string>& known) const;
  const std::string& only_name() const;

  std::string command_;
  const std::vector<Scenario>& scenarios_;
  const Backends& backends_;
  CLI::App app_;
  Flags flags_;
};

void Parser::declare() {
  if (command_ == "verify") app_.description(kVerifyHelp);
  app_.footer("Examples:\n" + kExamples.at(command_) + "\n" + kExitStatus);
  app_.add_flag("--json", flags_.json, "One JSON object on standard output, nothing else");
  if (command_ == "list") return;
  if (command_ == "run" || command_ == "hunt" || command_ == "verify" || command_ == "merge")
    text_flag("--junit", flags_.junit, "File for the result as JUnit's XML, as CI systems read it");
  if (command_ == "merge") {
    app_.add_option("FILE", flags_.names, "What 'hunt --shard I/N --json' printed, all N of them");
    return;
  }
  app_.add_option("NAME", flags_.names, "Scenario; 'rehearsal list' shows them");
  app_.add_option("--set", flags_.set, "Option of the scenario, key=value; may be repeated")
      ->allow_extra_args(false);
  if (command_ == "worker") {
    text_flag("--seed", flags_.seed, "Seed of the run [1]; the same at all workers");
    text_flag("--rank", flags_.rank, "Rank of this worker [from the environment]");
    text_flag("--world-size", flags_.world_size, "Number of workers [from the environment]");
    text_flag("--rendezvous", flags_.rendezvous,
              "env://, tcp://host:port or file:///path [env://: MASTER_ADDR and MASTER_PORT]");
    return;
  }
  if (command_ == "explore") return declare_explore_flags();
  declare_run_flags();
  if (command_ == "run" || command_ == "shrink") {
    text_flag("--seed", flags_.seed, "Seed of the run [1]");
    text_flag("--crash-at", flags_.crash_at, "WORKER:N, a crash before its event N, from 0");
    app_.add_option("--redraw", flags_.redraws,
                    "SALT/N, draws one choice in N anew; may be repeated")
        ->allow_extra_args(false);
    app_.add_flag("--benign", flags_.benign, "What --decide does not give is benign, not drawn");
    app_.add_option("--decide", flags_.decisions,
                    "KEY=VALUE, one choice of the run; may be repeated")
        ->allow_extra_args(false);
  }
  if (command_ == "shrink") {
    text_flag("--for", flags_.time, "How long to try: 60s, 5m [60s]");
    text_flag("--out", flags_.directory, "File for what is left, to be replayed");
  } else if (command_ == "run") {
    text_flag("--net", flags_.net, "sim: one process, virtual time; tcp: processes here [sim]");
    text_flag("--compare", flags_.compare,
              "Earlier output of run --json; names the first tensor "
              "that differs");
    text_flag("--trace", flags_.trace, "File for all events of a simulated run, one line each");
  } else {
    declare_search_flags();
  }
}

void Parser::declare_run_flags() {
  text_flag("--faults", flags_.faults, "none, mild or hostile [mild, or drawn by the scenario]");
  text_flag("--crashes", flags_.crashes, "Workers that crash [0, or drawn by the scenario]");
  text_flag("--partitions", flags_.partitions, "long: partitions that outlive peer_timeout");
  text_flag("--pauses", flags_.pauses,
            "long: workers that stand still, and clocks that jump, for longer than peer_timeout");
  text_flag("--network", flags_.network,
            "How links behave: " + listed(backends_.networks) + " [drawn with the faults]");
  app_.add_option("--without", flags_.without,
                  "Classes of faults to leave out, of " + listed(backends_.fault_classes))
      ->delimiter(',')
      ->allow_extra_args(false);
  text_flag("--strategy", flags_.strategy,
            command_ == "hunt"
                ? "How the order of events is chosen; delays:bound=D: all within D [portfolio]"
                : "How the order of events is chosen [" + backends_.strategies.front() + "]");
  declare_mutants();
}

void Parser::declare_mutants() {
  app_.add_option("--mutant", flags_.mutants,
                  "Leave out one rule of the protocol, to test an oracle")
      ->allow_extra_args(false);
}

void Parser::declare_explore_flags() {
  text_flag("--seed", flags_.seed, "Seed of the program [1]");
  declare_mutants();
  text_flag("--for", flags_.time, "Stop after this long: 60s, 5m [when all is explored]");
  text_flag("--schedule", flags_.schedule, "Only this one, as a failure prints it");
  text_flag("--trace", flags_.trace, "With --schedule: file for all its events, one line each");
}

void Parser::declare_search_flags() {
  text_flag("--seeds", flags_.seeds,
            command_ == "hunt" ? "Seeds of each scenario [1000]" : "Seeds [20]");
  text_flag("--first-seed", flags_.first_seed, "Where the seeds begin [1]");
  text_flag("--commit", flags_.commit, "Id of a commit, for a first seed that follows from it");
  if (command_ != "hunt") return;
  app_.add_flag("--crash-sweep", flags_.crash_sweep,
                "Every run again with a crash at each event of each worker [--seeds 1]");
  text_flag("--for", flags_.time, "Hunt for this long instead: 60s, 5m, 2h");
  text_flag("--jobs", flags_.jobs, "Processes [all cores]");
  text_flag("--shard", flags_.shard, "I/N: only part I of N, from 0 to N-1; 'merge' joins them");
  text_flag("--out", flags_.directory, "Directory for what a failure leaves");
  text_flag("--shrink-for", flags_.shrink_time,
            "How long a failure is made smaller, 0s: not at all [60s]");
}

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
  return ListCommand{};
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
  if (!flags_.partitions.empty()) {
    check_known("--partitions", flags_.partitions, {"long"});
    settings.long_partitions = true;
  }
  if (!flags_.pauses.empty()) {
    check_known("--pauses", flags_.pauses, {"long"});
    settings.long_pauses = true;
  }
  if (!flags_.network.empty()) check_known("--network", flags_.network, backends_.networks);
  for (const std::string& fault : flags_.without)
    check_known("--without", fault, backends_.fault_classes);
  settings.network = flags_.network;
  settings.without = flags_.without;
  if (!flags_.strategy.empty())
    settings.strategy = checked_strategy(command_, flags_.strategy, backends_);
  for (const std::string& redraw : flags_.redraws) check_redraw(redraw, backends_);
  settings.redraws = flags_.redraws;
  for (const std::string& mutant : flags_.mutants)
    check_known("--mutant", mutant, backends_.mutants);
  if (!flags_.crash_at.empty()) settings.crash_at = parse_crash_at(flags_.crash_at);
  settings.benign = flags_.benign;
  settings.mutants = flags_.mutants;
  settings.trace_file = flags_.trace;
  // What the options name is looked at now, so that a bad file is wrong usage and not a failed run.
  const std::vector<std::string> workers = worker_names(settings);
  try {
    for (const std::string& decision : flags_.decisions) {
      settings.decisions.push_back(sim::with_numbers(decision, workers));
      backends_.check_decision(settings.decisions.back());
    }
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--decide: ") + wrong.what());
  }
  return settings;
}

RunCommand Parser::run_command() const {
  RunCommand command{settings_of(only_name(), "full"), flags_.compare, flags_.junit};
  if (command.settings.net == Net::sim) return command;
  const bool faults = command.settings.faults && *command.settings.faults != Faults::none;
  const std::vector<std::pair<std::string, bool>> simulated_only = {
      {"--faults " + flags_.faults, faults},
      {"--crashes " + flags_.crashes, command.settings.crashes.value_or(0) > 0},
      {"--crash-at " + flags_.crash_at, command.settings.crash_at.has_value()},
      {"--partitions long", command.settings.long_partitions.value_or(false)},
      {"--pauses long", command.settings.long_pauses.value_or(false)},
      {"--network " + flags_.network, !flags_.network.empty()},
      {"--without", !flags_.without.empty()},
      {"--strategy " + flags_.strategy, !flags_.strategy.empty()},
      {"--redraw", !flags_.redraws.empty()},
      {"--decide", !flags_.decisions.empty()},
      {"--benign", flags_.benign},
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
  const size_t slash = flags_.shard.find('/');
  if (slash == std::string::npos)
    throw WrongUse("--shard " + flags_.shard + ": type I/N, for example 0/4");
  command.shard_count = parse_whole("--shard: N", flags_.shard.substr(slash + 1), 1, 1'000'000);
  command.shard =
      parse_whole("--shard: I", flags_.shard.substr(0, slash), 0, command.shard_count - 1);
}

HuntCommand Parser::hunt_command() const {
  if (flags_.names.empty()) throw WrongUse("name a scenario; 'rehearsal list' shows them");
  HuntCommand command;
  for (const std::string& name : flags_.names)
    command.scenarios.push_back(settings_of(name, "tiny"));
  if (!flags_.seeds.empty() && !flags_.time.empty()) {
    throw WrongUse("--seeds and --for: type one of them");
  }
  constexpr uint64_t kSeedsMax = 1'000'000'000'000;
  command.crash_sweep = flags_.crash_sweep;
  command.delay_bound = delay_bound_of(command.scenarios.front().strategy);
  if (command.crash_sweep && (command.delay_bound || flags_.strategy == kGuided))
    throw WrongUse("--crash-sweep and --strategy " + flags_.strategy + ": type one of them");
  if (command.crash_sweep && !flags_.time.empty()) {
    throw WrongUse("--crash-sweep and --for: a sweep runs to its end, type --seeds N instead");
  }
  if (flags_.time.empty()) {
    const uint64_t otherwise = command.crash_sweep || command.delay_bound ? 1 : 1000;
    command.seed_count =
        flags_.seeds.empty() ? otherwise : parse_whole("--seeds", flags_.seeds, 1, kSeedsMax);
  } else {
    command.seconds = parse_seconds("--for", flags_.time);
  }
  command.first_seed = first_seed(kSeedsMax);
  command.jobs = flags_.jobs.empty()
                     ? available_cores()
                     : static_cast<int>(parse_whole("--jobs", flags_.jobs, 1, 1024));
  take_shard(command);
  command.directory = flags_.directory;
  command.junit_file = flags_.junit;
  if (!flags_.shrink_time.empty())
    command.shrink_seconds = parse_seconds("--shrink-for", flags_.shrink_time);
  return command;
}

MergeCommand Parser::merge_command() const {
  if (flags_.names.empty())
    throw WrongUse("name the files that 'hunt --json' wrote, of all shards");
  return {flags_.names, flags_.junit};
}

ShrinkCommand Parser::shrink_command() const {
  ShrinkCommand command{.settings = settings_of(only_name(), "full"), .file = flags_.directory};
  if (!flags_.time.empty()) command.seconds = parse_seconds("--for", flags_.time);
  return command;
}

ExploreCommand Parser::explore_command() const {
  ExploreCommand command{.settings = settings_of(only_name(), "tiny"), .schedule = flags_.schedule};
  if (!flags_.time.empty()) command.seconds = parse_seconds("--for", flags_.time);
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

WorkerCommand Parser::worker_command() const {
  WorkerCommand command;
  command.settings = settings_of(only_name(), "full");
  command.settings.net = Net::tcp;
  constexpr uint32_t kWorkersMax = 1'000'000;
  const auto whole = [](const char* flag, const std::string& text, uint64_t min) {
    return static_cast<uint32_t>(parse_whole(flag, text, min, kWorkersMax));
  };
  if (!flags_.rank.empty()) command.place.rank = whole("--rank", flags_.rank, 0);
  if (!flags_.world_size.empty()) {
    command.place.world_size = whole("--world-size", flags_.world_size, 1);
  }
  if (!flags_.rendezvous.empty()) command.place.rendezvous = flags_.rendezvous;
  return command;
}

ParsedCommand parse_replay(const std::vector<std::string>& words,
                           const std::vector<Scenario>& scenarios, const Backends& backends) {
  std::vector<std::string> files = words;
  if (std::erase(files, "--help") + std::erase(files, "-h") > 0)
    return {ShowHelp{kReplayHelp}, false};
  const bool json = std::erase(files, "--json") > 0;
  if (files.size() != 1 || files.front().starts_with("-"))
    throw WrongUse("type rehearsal replay FILE, a file that 'shrink --out' wrote");
  try {
    ParsedCommand parsed = parse_arguments(read_run_file(files.front()), scenarios, backends);
    parsed.json = json;
    return parsed;
  } catch (const WrongUse& wrong) {
    const std::string text = wrong.what();
    throw WrongUse(text.starts_with(files.front()) ? text : files.front() + ": " + text);
  }
}

// `shrink FILE …` goes on from a run that was written down: FILE stands for what it holds.
std::vector<std::string> with_run_file(const std::vector<std::string>& words,
                                       const std::vector<Scenario>& scenarios) {
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (rest.empty() || rest.front().starts_with("-") ||
      std::any_of(scenarios.begin(), scenarios.end(),
                  [&rest](const Scenario& scenario) { return scenario.name == rest.front(); }) ||
      !std::filesystem::is_regular_file(rest.front()))
    return rest;
  std::vector<std::string> run = read_run_file(rest.front());
  run.erase(run.begin());
  run.insert(run.end(), rest.begin() + 1, rest.end());
  return run;
}

}  // namespace

bool is_command(const std::string& word) {
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

double parse_seconds(const std::string& flag, const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::map<std::string, double> units = {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const auto unit = units.find(text.substr(digits));
  if (digits == 0 || digits > 9 || unit == units.end()) {
    throw WrongUse(flag + " " + text + ": type a time, for example 60s, 5m or 2h");
  }
  return std::stod(text.substr(0, digits)) * unit->second;
}

ParsedCommand parse_arguments(const std::vector<std::string>& words,
                              const std::vector<Scenario>& scenarios, const Backends& backends) {
  if (words.empty()) {
    throw WrongUse(
        "name a command: list, run, hunt, merge, shrink, replay, report, explore, verify or "
        "worker; rehearsal --help explains them");
  }
  const std::string& command = words.front();
  if (command == "--help" || command == "-h" || command == "help")
    return {ShowHelp{kOverview}, false};
  if (!is_command(command)) {
    throw WrongUse("no command '" + command + "'; " + suggestion(command, kCommands));
  }
  if (command == "replay")
    return parse_replay({words.begin() + 1, words.end()}, scenarios, backends);
  if (command == "report")
    return parse_report({words.begin() + 1, words.end()}, scenarios, backends);
  Parser parser(command, scenarios, backends);
  if (command == "shrink") return parser.parse(with_run_file(words, scenarios));
  return parser.parse({words.begin() + 1, words.end()});
}

}  // namespace rehearsal::command_line
