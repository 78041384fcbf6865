// `verify`: every seed twice, in two processes that differ in everything that must not matter.
#include <algorithm>
#include <exception>
#include <iostream>

#include "command_line/commands.h"
#include "command_line/crew.h"
#include "command_line/determinism.h"
#include "command_line/junit.h"
#include "command_line/output_files.h"
#include "command_line/printed.h"
#include "command_line/surroundings.h"
#include "core/base/printable.h"

namespace rehearsal::command_line {
namespace {

struct Pair {
  std::optional<RunOutcome> first;
  std::optional<RunOutcome> second;
};

// Each seed has the options and the strategy that a hunt would give it, unless they were named.
RunSettings with_seed(const Tool& tool, const VerifyCommand& command, uint64_t index) {
  RunSettings settings = command.settings;
  settings.seed = Seed{command.first_seed + index};
  settings.options = settings.scenario->options.drawn(settings.options, settings.seed);
  if (!settings.strategy.empty() || !tool.backends.portfolio) return settings;
  const std::string drawn = tool.backends.portfolio(settings.seed);
  const std::vector<std::string>& known = tool.backends.strategies;
  if (std::find(known.begin(), known.end(), drawn) != known.end()) settings.strategy = drawn;
  return settings;
}

// The second process takes the seeds from the last to the first: what an earlier run leaves behind
// in a process would show, too. One process for all, because its start takes longer than most runs.
std::vector<Pair> run_all(const Tool& tool, const VerifyCommand& command,
                          const Surroundings& surroundings) {
  Crew crew({surroundings.first, surroundings.second}, kRunSecondsMax, Crew::Errors::shown);
  ProgressLine progress;
  std::vector<Pair> pairs(command.seed_count);
  std::vector<uint64_t> given(crew.size(), 0);
  size_t done_count = 0;
  while (true) {
    for (size_t child = 0; child < crew.size(); ++child) {
      while (crew.can_take(child) && given[child] < command.seed_count) {
        const uint64_t index = child == 0 ? given[child] : command.seed_count - 1 - given[child];
        crew.give(child, index, with_seed(tool, command, index));
        ++given[child];
      }
    }
    if (!crew.busy()) return pairs;
    for (Crew::Done& done : crew.wait()) {
      Pair& pair = pairs[done.task];
      (done.child == 0 ? pair.first : pair.second) = std::move(done.outcome);
      ++done_count;
    }
    progress.show("verify: " + std::to_string(done_count) + " of " +
                  std::to_string(2 * command.seed_count) + " runs");
  }
}

RunSettings with_first_seed(const VerifyCommand& command) {
  RunSettings settings = command.settings;
  settings.seed = Seed{command.first_seed};
  return settings;
}

// Verifies so many seeds from that of `settings` on.
std::string verify_line(const Tool& tool, const RunSettings& settings, uint64_t seed_count) {
  std::vector<std::string> arguments = run_arguments(settings);
  arguments[0] = "verify";
  arguments[2] = "--first-seed";  // was --seed
  arguments.insert(arguments.begin() + 4, {"--seeds", std::to_string(seed_count)});
  return shell_command(tool.program, arguments);
}

// The verdict over all seeds as a test case. REQUIRES: `settings` are those of the failure, if any.
JunitCase junit_case(const Tool& tool, const VerifyCommand& command, const RunSettings& settings,
                     const std::optional<sim::RunFailure>& failure) {
  return {.name = settings.scenario->name,
          .failure = failure,
          .replay = replay_command(tool.program, settings),
          .properties = {{"first_seed", std::to_string(command.first_seed)},
                         {"seeds", std::to_string(command.seed_count)}}};
}

// That runs differ is told even where it cannot be found out in what.
Difference difference_of(const Tool& tool, const VerifyCommand& command,
                         const Surroundings& surroundings, uint64_t index) {
  Runs first;
  for (uint64_t i = 0; i <= index; ++i) first.push_back(with_seed(tool, command, i));
  Runs second;
  for (uint64_t i = command.seed_count; i > index; --i)
    second.push_back(with_seed(tool, command, i - 1));
  try {
    return find_difference(surroundings, first, second);
  } catch (const std::exception& error) {
    return {.kind = Difference::Kind::untold, .why = printable(error.what())};
  }
}

int report_difference(const Tool& tool, const VerifyCommand& command,
                      const Surroundings& surroundings, uint64_t index) {
  const RunSettings settings = with_seed(tool, command, index);
  const Difference difference = difference_of(tool, command, surroundings, index);
  const bool known =
      difference.kind == Difference::Kind::event || difference.kind == Difference::Kind::result;
  const bool alone = known && difference.after_seeds.empty();
  const std::string line = alone ? verify_line(tool, settings, 1)
                                 : verify_line(tool, with_first_seed(command), command.seed_count);
  const sim::RunFailure failure{"determinism", "", to_text(difference)};
  OutputFiles files;
  files.write(command.junit_file,
              junit_text("verify", {junit_case(tool, command, settings, failure)}));
  if (tool.json) {
    const Json json{{"command", "verify"},
                    {"scenario", settings.scenario->name},
                    {"ok", false},
                    {"seed", settings.seed.value},
                    {"failure", to_json(failure, line)},
                    {"difference", to_json(difference)},
                    {"second_process", surroundings.differences}};
    std::cout << printed(json) << std::endl;
  }
  (tool.json ? std::cerr : std::cout)
      << settings.scenario->name << " FAILED with seed " << settings.seed.value << ": "
      << to_text(failure) << "\nthe second process has " << surroundings.differences << "\n"
      << line << std::endl;
  return files.end(tool, "verify", kNondeterminism);
}

}  // namespace

int verify(const Tool& tool, const VerifyCommand& command) {
  check_output_file("--junit", command.junit_file);
  const Stopwatch stopwatch;
  const Surroundings surroundings = make_surroundings();
  const std::vector<Pair> pairs = run_all(tool, command, surroundings);
  for (uint64_t index = 0; index < pairs.size(); ++index) {
    if (!same_outcome(*pairs[index].first, *pairs[index].second))
      return report_difference(tool, command, surroundings, index);
  }
  const auto failed =
      std::find_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return !pair.first->ok; });
  Json json{{"command", "verify"},
            {"scenario", command.settings.scenario->name},
            {"ok", failed == pairs.end()},
            {"seeds", command.seed_count},
            {"wall_seconds", stopwatch.seconds()},
            {"second_process", surroundings.differences}};
  OutputFiles files;
  if (failed == pairs.end()) {
    files.write(command.junit_file,
                junit_text("verify", {junit_case(tool, command, command.settings, std::nullopt)}));
    if (tool.json) {
      std::cout << printed(json) << std::endl;
    } else {
      std::cout << "verify: " << command.settings.scenario->name << ", " << command.seed_count
                << " seeds, each twice: equal\nthe second process had " << surroundings.differences
                << std::endl;
    }
    return files.end(tool, "verify", kHolds);
  }
  const RunSettings settings =
      with_seed(tool, command, static_cast<uint64_t>(failed - pairs.begin()));
  const sim::RunFailure failure = failed->first->failure.value_or(sim::RunFailure{});
  files.write(command.junit_file,
              junit_text("verify", {junit_case(tool, command, settings, failure)}));
  json["seed"] = settings.seed.value;
  json["failure"] = to_json(failure, replay_command(tool.program, settings));
  if (tool.json) std::cout << printed(json) << std::endl;
  print_failure(tool, settings, failure);
  return files.end(tool, "verify", kFailed);
}

}  // namespace rehearsal::command_line
