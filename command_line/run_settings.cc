#include "command_line/run_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "command_line/devices_flag.h"
#include "command_line/suggestion.h"
#include "command_line/wrong_use.h"
#include "sim/decisions/decision_words.h"
#include "sim/hunt/choice_lists.h"
#include "sim/world/fault_words.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kRunSize = "full";

// The flags that run_arguments() writes.
constexpr std::string_view kBenign = "--benign";  // alone has no value
constexpr std::array<std::string_view, 20> kFlags = {"--seed",
                                                     "--set",
                                                     "--faults",
                                                     "--crashes",
                                                     "--mad",
                                                     "--devices",
                                                     "--restarts",
                                                     "--partitions",
                                                     "--pauses",
                                                     "--network",
                                                     "--without",
                                                     "--crash-at",
                                                     "--strategy",
                                                     "--redraw",
                                                     "--mutant",
                                                     "--watchdog",
                                                     "--virtual-time-max",
                                                     kBenign,
                                                     "--decide",
                                                     "--schedule"};
constexpr std::array<std::string_view, 3> kFlagsOverTcp = {"--net", "--checkpoints",
                                                           "--collectives"};

bool is_run_flag(const std::string& word, Net net) {
  const bool always = std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end();
  return always || (net == Net::tcp && std::find(kFlagsOverTcp.begin(), kFlagsOverTcp.end(),
                                                 word) != kFlagsOverTcp.end());
}

bool needs_quotes(const std::string& word) {
  const auto plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') ||
           std::string_view("-_./:=,+%@").find(letter) != std::string_view::npos;
  };
  return word.empty() || !std::all_of(word.begin(), word.end(), plain);
}

std::string quoted(const std::string& word) {
  if (!needs_quotes(word)) return word;
  std::string result = "'";
  for (const char letter : word)
    result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

// As parse_seconds reads it.
std::string seconds_text(double seconds) {
  const auto milliseconds = static_cast<int64_t>(std::llround(seconds * 1000));
  return milliseconds % 1000 == 0 ? std::to_string(milliseconds / 1000) + "s"
                                  : std::to_string(milliseconds) + "ms";
}

// An explored run has faults and an order of events by its schedule only.
std::vector<std::string> explore_arguments(const RunSettings& settings) {
  std::vector<std::string> arguments = {"explore", settings.scenario->name, "--seed",
                                        std::to_string(settings.seed.value)};
  for (const std::string& assignment : settings.options.assignments())
    arguments.insert(arguments.end(), {"--set", assignment});
  for (const std::string& mutant : settings.mutants)
    arguments.insert(arguments.end(), {"--mutant", mutant});
  arguments.insert(arguments.end(), {"--schedule", settings.schedule});
  return arguments;
}

template <class T>
void set_if_given(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

template <class T>
std::optional<T> get_if_given(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return json.at(key).get<T>();
}

}  // namespace

ScenarioFaults RunSettings::fault_plan() const {
  ScenarioFaults plan;
  if (scenario->draw_faults) plan = scenario->draw_faults(options, seed);
  plan.faults = faults.value_or(plan.faults);
  plan.crashes = crashes.value_or(plan.crashes);
  plan.mad = mad.value_or(plan.mad);
  plan.restarts = restarts.value_or(plan.restarts);
  plan.long_partitions = long_partitions.value_or(plan.long_partitions);
  plan.long_pauses = long_pauses.value_or(plan.long_pauses);
  for (const std::string& fault : without) {
    if (fault == "crashes") plan.crashes = 0;
    if (fault == "madness") plan.mad = 0;
    if (fault == "partitions") plan.long_partitions = false;
    if (fault == "pauses") plan.long_pauses = false;
  }
  return plan;
}

int RunSettings::device_count() const { return devices_meant(devices, seed); }

Program RunSettings::program(Reporter& reporter) const {
  return scenario->program(
      {.options = options, .seed = seed, .reporter = reporter, .devices = device_count()});
}

std::vector<std::string> worker_names(const RunSettings& settings) {
  Reporter unused;
  return settings.program(unused).names();
}

std::vector<std::string> run_arguments(const RunSettings& settings) {
  if (!settings.schedule.empty()) return explore_arguments(settings);
  std::vector<std::string> arguments = {"run", settings.scenario->name, "--seed",
                                        std::to_string(settings.seed.value)};
  const auto add = [&](const std::string& flag, const std::string& value) {
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  if (settings.net != Net::sim) add("--net", name_of(settings.net));
  for (const std::string& assignment : settings.options.assignments()) add("--set", assignment);
  if (settings.faults) add("--faults", std::string(name_of(*settings.faults)));
  if (settings.crashes) add("--crashes", std::to_string(*settings.crashes));
  if (settings.mad) add("--mad", std::to_string(*settings.mad));
  if (!settings.devices.empty()) add("--devices", settings.devices);
  if (settings.restarts) add("--restarts", std::string(name_of(*settings.restarts)));
  if (settings.long_partitions) add("--partitions", name_of_length(*settings.long_partitions));
  if (settings.long_pauses) add("--pauses", name_of_length(*settings.long_pauses));
  if (!settings.network.empty()) add("--network", settings.network);
  if (!settings.without.empty()) add("--without", joined(settings.without));
  if (settings.crash_at) {
    add("--crash-at",
        settings.crash_at->worker + ":" + std::to_string(settings.crash_at->decision));
  }
  if (!settings.strategy.empty()) add("--strategy", settings.strategy);
  for (const std::string& redraw : settings.redraws) add("--redraw", redraw);
  if (!settings.checkpoints.empty()) add("--checkpoints", settings.checkpoints);
  if (!settings.collectives.empty()) add("--collectives", settings.collectives);
  for (const std::string& mutant : settings.mutants) add("--mutant", mutant);
  if (settings.watchdog) add("--watchdog", seconds_text(*settings.watchdog));
  if (settings.virtual_time_max)
    add("--virtual-time-max", seconds_text(*settings.virtual_time_max));
  if (settings.benign) arguments.emplace_back(kBenign);
  if (settings.decisions.empty()) return arguments;
  const std::vector<std::string> workers = worker_names(settings);
  for (const sim::Override& decision : settings.decisions)
    add("--decide", sim::with_names(to_string(decision), workers));
  return arguments;
}

std::optional<std::string> foreign_argument(const std::vector<std::string>& arguments, Net net) {
  bool flag_is_next = false;  // the scenario comes first
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool fits = flag_is_next ? is_run_flag(word, net) : !word.starts_with("-");
    if (!fits) return word;
    flag_is_next = !flag_is_next || word == kBenign;
  }
  return std::nullopt;
}

std::string replay_command(const std::string& program, const RunSettings& settings) {
  return shell_command(program, run_arguments(settings));
}

bool fits_a_command(const std::string& command) {
  constexpr size_t kBytesMax = 100'000;  // a system refuses some two million, or a part of that
  return command.size() <= kBytesMax;
}

std::string shell_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::string command = quoted(program);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  return command;
}

Json to_json(const RunSettings& settings) {
  Json json{{"scenario", settings.scenario->name},
            {"seed", settings.seed.value},
            {"net", name_of(settings.net)},
            {"set", settings.options.assignments()},
            {"network", settings.network},
            {"devices", settings.devices},
            {"without", settings.without},
            {"strategy", settings.strategy},
            {"trace_file", settings.trace_file},
            {"choices_file", settings.choices_file},
            {"history_file", settings.history_file},
            {"spans_file", settings.spans_file},
            {"schedule", settings.schedule},
            {"checkpoints", settings.checkpoints},
            {"record_folder", settings.record_folder},
            {"collectives", settings.collectives},
            {"spin", settings.spin},
            {"peer_timeout", settings.liveness.peer_timeout},
            {"heartbeat", settings.liveness.heartbeat},
            {"refusal_limit", settings.liveness.refusal_limit},
            {"mutants", settings.mutants},
            {"decisions", sim::texts_of(settings.decisions)},
            {"benign", settings.benign},
            {"exception_traces", settings.exception_traces},
            {"record", settings.record},
            {"redraws", settings.redraws},
            {"tell_widths", settings.tell_widths},
            {"tell_features", settings.tell_features},
            {"tell_coverage", settings.tell_coverage}};
  if (settings.faults) json["faults"] = std::string(name_of(*settings.faults));
  if (settings.restarts) json["restarts"] = std::string(name_of(*settings.restarts));
  if (settings.crash_at) {
    json["crash_at"] = {{"worker", settings.crash_at->worker},
                        {"decision", settings.crash_at->decision}};
  }
  set_if_given(json, "record_bytes", settings.record_bytes);
  set_if_given(json, "crashes", settings.crashes);
  set_if_given(json, "mad", settings.mad);
  set_if_given(json, "watchdog", settings.watchdog);
  set_if_given(json, "virtual_time_max", settings.virtual_time_max);
  set_if_given(json, "long_partitions", settings.long_partitions);
  set_if_given(json, "long_pauses", settings.long_pauses);
  return json;
}

RunSettings settings_from_json(const Json& json, const std::vector<Scenario>& scenarios) {
  RunSettings settings;
  settings.scenario = &find_scenario(scenarios, json.at("scenario").get<std::string>());
  settings.options =
      settings.scenario->options.parse(json.at("set").get<std::vector<std::string>>(), kRunSize);
  settings.seed = Seed{json.at("seed").get<uint64_t>()};
  settings.net = parse_net(json.at("net").get<std::string>());
  if (json.contains("faults")) settings.faults = parse_faults(json.at("faults").get<std::string>());
  if (json.contains("restarts"))
    settings.restarts = parse_restarts(json.at("restarts").get<std::string>());
  if (json.contains("crash_at")) {
    const Json& crash_at = json.at("crash_at");
    settings.crash_at = {crash_at.at("worker").get<std::string>(),
                         crash_at.at("decision").get<uint64_t>()};
  }
  settings.crashes = get_if_given<int>(json, "crashes");
  settings.mad = get_if_given<int>(json, "mad");
  settings.watchdog = get_if_given<double>(json, "watchdog");
  settings.virtual_time_max = get_if_given<double>(json, "virtual_time_max");
  settings.long_partitions = get_if_given<bool>(json, "long_partitions");
  settings.long_pauses = get_if_given<bool>(json, "long_pauses");
  settings.network = json.at("network").get<std::string>();
  settings.devices = json.at("devices").get<std::string>();
  settings.without = json.at("without").get<std::vector<std::string>>();
  settings.strategy = json.at("strategy").get<std::string>();
  settings.trace_file = json.at("trace_file").get<std::string>();
  settings.choices_file = json.at("choices_file").get<std::string>();
  settings.history_file = json.at("history_file").get<std::string>();
  settings.spans_file = json.at("spans_file").get<std::string>();
  settings.schedule = json.at("schedule").get<std::string>();
  settings.checkpoints = json.at("checkpoints").get<std::string>();
  settings.record_folder = json.at("record_folder").get<std::string>();
  settings.collectives = json.at("collectives").get<std::string>();
  settings.spin = json.at("spin").get<std::string>();
  settings.liveness = {json.at("peer_timeout").get<std::string>(),
                       json.at("heartbeat").get<std::string>(),
                       json.at("refusal_limit").get<std::string>()};
  settings.record_bytes = get_if_given<uint64_t>(json, "record_bytes");
  settings.mutants = json.at("mutants").get<std::vector<std::string>>();
  settings.decisions = sim::parse_overrides(json.at("decisions").get<std::vector<std::string>>());
  settings.benign = json.at("benign").get<bool>();
  settings.exception_traces = json.value("exception_traces", false);
  settings.record = json.at("record").get<bool>();
  settings.redraws = json.at("redraws").get<std::vector<std::string>>();
  settings.tell_widths = json.at("tell_widths").get<bool>();
  settings.tell_features = json.at("tell_features").get<bool>();
  settings.tell_coverage = json.at("tell_coverage").get<bool>();
  return settings;
}

const char* name_of_length(bool is_long) { return is_long ? "long" : "short"; }

const char* name_of(Net net) { return net == Net::sim ? "sim" : "tcp"; }

sim::FaultLevel parse_faults(const std::string& text) {
  if (const auto level = sim::fault_level_named(text)) return *level;
  throw WrongUse("--faults " + text + ": type none, mild or hostile");
}

sim::Restart parse_restarts(const std::string& text) {
  if (const auto restart = sim::restart_named(text)) return *restart;
  throw WrongUse("--restarts " + text + ": type never, amnesia, checkpoint or drawn");
}

bool parse_length(const std::string& flag, const std::string& text) {
  for (const bool is_long : {true, false}) {
    if (text == name_of_length(is_long)) return is_long;
  }
  throw WrongUse(flag + " " + text + ": type long or short");
}

Net parse_net(const std::string& text) {
  for (const Net net : {Net::sim, Net::tcp}) {
    if (text == name_of(net)) return net;
  }
  throw WrongUse("--net " + text + ": type sim or tcp");
}

const Scenario& find_scenario(const std::vector<Scenario>& scenarios, const std::string& name) {
  std::vector<std::string> names;
  for (const Scenario& scenario : scenarios) {
    if (scenario.name == name) return scenario;
    names.push_back(scenario.name);
  }
  throw WrongUse("no scenario '" + name + "'; " + suggestion(name, names));
}

}  // namespace rehearsal::command_line
