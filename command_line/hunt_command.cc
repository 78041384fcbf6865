// `hunt`: many seeds on all cores; the first failure, in the order of seeds, is reported.
#include <exception>
#include <iostream>

#include "command_line/commands.h"
#include "command_line/delay_bound.h"
#include "command_line/explanation.h"
#include "command_line/failure_folder.h"
#include "command_line/hunt_result.h"
#include "command_line/hunt_search.h"
#include "command_line/junit.h"
#include "command_line/output_files.h"
#include "command_line/output_folder.h"
#include "command_line/printed.h"
#include "command_line/program_name.h"
#include "command_line/shrinker.h"
#include "core/base/printable.h"

namespace rehearsal::command_line {
namespace {

// "storm --faults hostile --crashes 1"
std::string way_text(const RunSettings& settings) {
  RunSettings plain;
  plain.scenario = settings.scenario;
  plain.options = settings.scenario->options.parse({}, "tiny");
  plain.seed = settings.seed;
  const std::vector<std::string> known = run_arguments(plain);
  std::string text = settings.scenario->name;
  const std::vector<std::string> words = run_arguments(settings);
  for (size_t i = known.size(); i < words.size(); ++i) text += " " + words[i];
  return text;
}

std::vector<HuntShare> shares_of(const HuntCommand& command, const HuntSearch& search) {
  std::vector<HuntShare> shares;
  for (const HuntSharing::Row& row : search.shares())
    shares.push_back({way_text(command.scenarios[shares.size()]), row.runs, row.new_in_a_run});
  return shares;
}

HuntResult result_of(const Tool& tool, const HuntCommand& command, const HuntSearch& search) {
  HuntResult result{.identity = identity_of(command),
                    .runs = search.runs(),
                    .spent = {},
                    .shares = shares_of(command, search),
                    .wall_seconds = search.seconds(),
                    .shard_seconds = search.seconds(),
                    .failure = std::nullopt};
  result.coverage = search.coverage();
  for (const auto& [strategy, spent] : search.spent())
    result.spent[strategy.empty() ? tool.backends.strategies.front() : strategy] = spent;
  return result;
}

const char* what_came_of(Shrunk::End end) {
  if (end == Shrunk::End::holds) return "held";
  return end == Shrunk::End::unfinished ? "had not ended in time" : "was not the same";
}

std::optional<Shrunk> shrink_found(const Tool& tool, const HuntCommand& command,
                                   const RunSettings& settings, const sim::RunFailure& failure) {
  if (command.shrink_budget.empty() || failure.oracle == kUnfinished) return std::nullopt;
  Shrunk shrunk;
  try {
    shrunk = shrink_run(tool, settings,
                        {.budget = command.shrink_budget,
                         .file = file_in(command.directory, "failure.run"),
                         .hangs = failure.oracle == "watchdog"});
  } catch (const std::exception& error) {  // The failure itself must still be reported.
    std::cerr << "hunt: it cannot be made small: " << printable_lines(error.what())
              << "\nhunt: told is the run as it was found" << std::endl;
    return std::nullopt;
  }
  const bool is_shrunk = shrunk.end == Shrunk::End::shrunk;
  if (is_shrunk && fits_a_command(replay_command(tool.program, shrunk.settings))) return shrunk;
  if (is_shrunk) {
    std::cerr << "hunt: in the time of --shrink-for it could not be made small enough for a "
                 "command line; told is the run as it was found"
              << std::endl;
    return std::nullopt;
  }
  std::cerr << "hunt: the same run " << what_came_of(shrunk.end) << " when it was run again; '"
            << program_name(tool.program) << " verify " << settings.scenario->name << "' says more"
            << std::endl;
  return std::nullopt;
}

std::string crash_text(const RunSettings& settings) {
  if (!settings.crash_at) return "";
  return settings.crash_at->worker + ":" + std::to_string(settings.crash_at->decision);
}

struct FoundRun {
  const RunSettings& settings;
  const RunOutcome& outcome;
  double wall_seconds = 0;  // until it was found
};

// The failure as it was found, then as small as it could be made.
HuntFailure failure_of(const Tool& tool, const HuntCommand& command, const FoundRun& found,
                       OutputFiles& files) {
  const auto& [settings, outcome, wall_seconds] = found;
  const sim::RunFailure failure = outcome.failure.value_or(sim::RunFailure{});
  const std::string as_found = replay_command(tool.program, settings);
  remove_pictures(command.directory);
  const std::optional<Shrunk> shrunk = shrink_found(tool, command, settings, failure);
  const RunSettings& smallest = shrunk ? shrunk->settings : settings;
  const HuntFailure last{.scenario = settings.scenario->name,
                         .seed = settings.seed.value,
                         .crash_at = crash_text(settings),
                         .failure = shrunk ? shrunk->failure : failure,
                         .replay = replay_command(tool.program, smallest),
                         .as_found = as_found,
                         .others = shrunk ? others_json(tool, *shrunk) : Json::array()};
  Json report = report_json(settings, outcome, wall_seconds, as_found);
  if (shrunk) report["shrunk"] = to_json(last.failure, last.replay);
  leave_run(files, command.directory, report, smallest, last.failure);
  if (shrunk) (tool.json ? std::cerr : std::cout) << others_text(tool, *shrunk);
  const bool keeps = !command.directory.empty();
  leave_pictures(files, command.directory,
                 explain_failure(tool, smallest, last.failure, /*with_spans=*/keeps));
  return last;
}

// "hunt: storm, seed 1: no failure with at most 2 deviations from first come, first served, in 212
// choices: 22579 schedules"
std::string certificate(const HuntCommand& command, const RunSettings& settings,
                        const DelaySearch& search) {
  std::string text = settings.scenario->name + ", seed " + std::to_string(settings.seed.value) +
                     ": no failure with at most " + std::to_string(*command.delay_bound) +
                     " deviation" + (*command.delay_bound == 1 ? "" : "s") +
                     " from first come, first served, in " + std::to_string(search.choices) +
                     " choices: " + std::to_string(search.schedules) + " schedules";
  if (command.shard_count > 1)
    text +=
        " in part " + std::to_string(command.shard) + " of " + std::to_string(command.shard_count);
  if (!search.complete) text += " so far, not all of them: the budget is spent";
  return text;
}

Json delays_json(const HuntCommand& command, const RunSettings& settings,
                 const DelaySearch& search) {
  return {{"scenario", settings.scenario->name}, {"seed", settings.seed.value},
          {"deviations", *command.delay_bound},  {"choices", search.choices},
          {"schedules", search.schedules},       {"decisions", search.decisions},
          {"complete", search.complete}};
}

// All schedules within the bound, of every seed.
int hunt_delays(const Tool& tool, const HuntCommand& command) {
  const Stopwatch stopwatch;
  HuntResult result{.identity = identity_of(command)};
  OutputFiles files;
  Json certificates = Json::array();
  for (uint64_t i = 0; i < command.seed_count.value_or(1) && !result.failure; ++i) {
    for (RunSettings settings : command.scenarios) {
      settings.seed = Seed{command.first_seed + i};
      const DelaySearch search = search_delays(tool, command, settings);
      result.runs[settings.scenario->name] += search.schedules;
      result.spent["delays"].runs += search.schedules;
      result.spent["delays"].decisions += search.decisions;
      result.wall_seconds = result.shard_seconds = stopwatch.seconds();
      if (search.failed) {
        result.failure =
            failure_of(tool, command, {*search.failed, search.outcome, result.wall_seconds}, files);
        break;
      }
      certificates.push_back(delays_json(command, settings, search));
      if (!tool.json) std::cout << "hunt: " << certificate(command, settings, search) << std::endl;
    }
  }
  files.write(command.junit_file, junit_text("hunt", junit_cases(result)));
  if (result.failure) return files.end(tool, "hunt", print_result(tool, result));
  Json json = to_json(result);
  json["certificates"] = std::move(certificates);
  if (tool.json) std::cout << printed(json) << std::endl;
  return files.end(tool, "hunt", kHolds);
}

}  // namespace

int hunt(const Tool& tool, const HuntCommand& command) {
  make_folder("--out", command.directory);
  check_output_file("--junit", command.junit_file);
  if (command.delay_bound) return hunt_delays(tool, command);
  const HuntTasks tasks =
      command.crash_sweep ? crash_sweep_tasks(tool, command) : seed_tasks(command, tool.backends);
  HuntSearch search(tool, command, tasks);
  const std::optional<HuntSearch::Found> found = search.search();
  HuntResult result = result_of(tool, command, search);
  OutputFiles files;
  if (found)
    result.failure =
        failure_of(tool, command, {found->settings, found->outcome, result.wall_seconds}, files);
  files.write(command.junit_file, junit_text("hunt", junit_cases(result)));
  return files.end(tool, "hunt", print_result(tool, result));
}

}  // namespace rehearsal::command_line
