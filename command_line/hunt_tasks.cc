#include "command_line/hunt_tasks.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace rehearsal::command_line {
namespace {

std::vector<RunOutcome> simulate_all(const Tool& tool, const HuntTasks& tasks, int jobs) {
  Crew crew = make_crew(tool, jobs, Crew::Errors::shown);
  std::vector<RunOutcome> outcomes(*tasks.count);
  size_t next = 0;
  while (true) {
    for (size_t child = 0; child < crew.size(); ++child) {
      while (crew.can_take(child) && next < outcomes.size()) {
        crew.give(child, next, tasks.settings_of(next));
        ++next;
      }
    }
    if (!crew.busy()) return outcomes;
    for (Crew::Done& done : crew.wait()) outcomes[done.task] = std::move(done.outcome);
  }
}

// A crash at each event of each worker of one run.
struct Sweep {
  RunSettings settings;
  std::map<std::string, uint64_t> decisions;

  size_t size() const {
    size_t total = 0;
    for (const auto& [worker, count] : decisions) total += count;
    return total;
  }
  RunSettings at(size_t index) const {
    RunSettings result = settings;
    for (const auto& [worker, count] : decisions) {
      if (index < count) {
        result.crash_at = CrashAt{worker, index};
        break;
      }
      index -= count;
    }
    return result;
  }
};

}  // namespace

Crew make_crew(const Tool& tool, int jobs, Crew::Errors errors, double run_seconds_max) {
  return Crew(std::vector<ChildSetup>(static_cast<size_t>(jobs),
                                      {.arguments = {kChildCommand}, .tool = &tool}),
              run_seconds_max, errors);
}

HuntTasks seed_tasks(const HuntCommand& command, const Backends& backends) {
  HuntTasks tasks;
  const size_t scenario_count = command.scenarios.size();
  if (command.seed_count) {
    const uint64_t shard = command.shard;
    const uint64_t all = *command.seed_count;
    const uint64_t seeds =
        all > shard ? (all - shard + command.shard_count - 1) / command.shard_count : 0;
    tasks.count = seeds * scenario_count;
  }
  tasks.learns = !command.crash_sweep;
  tasks.guided = !command.crash_sweep &&
                 std::any_of(command.scenarios.begin(), command.scenarios.end(),
                             [&backends](const RunSettings& settings) {
                               return settings.strategy == kGuided ||
                                      (settings.strategy.empty() && backends.portfolio);
                             });
  const auto nth_of = [&command, &backends](size_t scenario, uint64_t nth) {
    RunSettings settings = command.scenarios[scenario];
    settings.seed = Seed{command.first_seed + command.shard + nth * command.shard_count};
    settings.options = settings.scenario->options.drawn(settings.options, settings.seed);
    if (settings.strategy.empty() && backends.portfolio && !command.crash_sweep)
      settings.strategy = backends.portfolio(settings.seed);
    return settings;
  };
  tasks.settings_of = [nth_of, scenario_count](size_t task) {
    return nth_of(task % scenario_count, task / scenario_count);
  };
  if (!command.seed_count && scenario_count > 1) tasks.nth_of = nth_of;
  return tasks;
}

HuntTasks crash_sweep_tasks(const Tool& tool, const HuntCommand& command) {
  const HuntTasks whole = seed_tasks(command, tool.backends);
  const std::vector<RunOutcome> outcomes = simulate_all(tool, whole, command.jobs);
  auto sweeps = std::make_shared<std::vector<Sweep>>();
  HuntTasks tasks{.count = 0, .settings_of = nullptr};
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const RunSettings settings = whole.settings_of(i);
    if (!outcomes[i].ok)
      return {.count = 1, .settings_of = [settings](size_t) { return settings; }};
    sweeps->push_back({settings, outcomes[i].decisions});
    *tasks.count += sweeps->back().size();
  }
  tasks.settings_of = [sweeps](size_t task) {
    size_t sweep = 0;
    while (task >= (*sweeps)[sweep].size()) task -= (*sweeps)[sweep++].size();
    return (*sweeps)[sweep].at(task);
  };
  return tasks;
}

}  // namespace rehearsal::command_line
