#include "scenarios/batch_rl/batch_rl.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "core/base/hash.h"
#include "scenarios/batch_rl/agent.h"
#include "scenarios/devices.h"
#include "scenarios/storm/drawn_faults.h"
#include "sim/values.h"

namespace rehearsal::batch_rl {
namespace {

constexpr size_t kReportInterval = 10;

std::vector<RRef<Observer>> make_observers(Worker& worker, const Settings& settings) {
  std::vector<RRef<Observer>> observers;
  for (int64_t i = 0; i < settings.observers; ++i)
    observers.push_back(worker.remote<Observer>("observer" + std::to_string(i), settings, i));
  return observers;
}

std::vector<Outcome> run_observers(const Worker& worker,
                                   const std::vector<RRef<Observer>>& observers,
                                   const RRef<Agent>& agent) {
  // Each observer makes all of its calls meanwhile.
  const Calls unlimited = worker.with_timeout(Timeout::never());
  std::vector<Future<Outcome>> running;
  for (const RRef<Observer>& observer : observers)
    running.push_back(unlimited.rpc_async(observer, &Observer::run_episode, agent));
  return worker.when_all(IfOneFails::cancel_rest, running).wait();
}

// Throws std::logic_error unless the episode gave what it gives in one process.
void compare(const Episode& episode, const Episode& alone, size_t number) {
  const std::string name = "episode " + std::to_string(number);
  if (episode.last_reward != alone.last_reward)
    throw std::logic_error(name + " has another reward than in one process");
  if (episode.policy != alone.policy)
    throw std::logic_error(name + " left another policy than in one process");
  if (episode.solved != alone.solved)
    throw std::logic_error(name + " is the last here or in one process, not in both");
}

std::string episode_text(size_t number, double last_reward, double running_reward) {
  char text[128];
  std::snprintf(text, sizeof text, "episode %3zu  last reward %6.1f  running reward %6.1f", number,
                last_reward, running_reward);
  return text;
}

void declare_results(Reporter& reporter, const Learner& learner, size_t episodes) {
  for (const auto& parameter : learner.policy().named_parameters())
    reporter.results.tensor("policy." + parameter.key(), parameter.value());
  reporter.results.number("episodes", static_cast<double>(episodes));
  reporter.results.number("running reward", learner.running_reward());
  reporter.results.number("solved", learner.solved() ? 1 : 0);
  reporter.results.number("passes", static_cast<double>(learner.passes()));
}

void agent_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  const auto agent = worker.remote<Agent>(worker.name(), settings);
  const std::vector<RRef<Observer>> observers = make_observers(worker, settings);
  TrainingAlone alone(settings);
  Episode episode;
  size_t episodes = 0;
  while (static_cast<int64_t>(episodes) < settings.episodes && !episode.solved) {
    const std::vector<Outcome> outcomes = run_observers(worker, observers, agent);
    double running_reward = 0;
    agent.with_local([&](Agent& value) {
      episode = end_episode(value.learner(), outcomes);
      running_reward = value.learner().running_reward();
    });
    if (rounds_as_cpu(worker)) compare(episode, alone.next_episode(), episodes);
    ++episodes;
    worker.note("running reward", running_reward);
    const std::string text = episode_text(episodes, episode.last_reward, running_reward);
    reporter.progress(text);
    if (episodes % kReportInterval == 0) reporter.line(text);
  }
  if (episode.solved) reporter.line("Solved in " + std::to_string(episodes) + " episodes");
  agent.with_local([&](Agent& value) { declare_results(reporter, value.learner(), episodes); });
}

Program program(const ScenarioRun& run) {
  const Options& options = run.options;
  const Settings settings{.observers = options.integer("observers"),
                          .episodes = options.integer("episodes"),
                          .steps = options.integer("steps"),
                          .batched = options.text("form") == "batched",
                          .seed = mix(run.seed.value) >> 1};
  FunctionRegistry registry;
  register_agent(registry);
  Program program(std::move(registry));
  program.worker("agent", [settings, &reporter = run.reporter](Worker& worker) {
    agent_main(worker, settings, reporter);
  });
  program.worker("observer", Count{static_cast<uint32_t>(settings.observers)});
  return program;
}

// In a batch each waits for all: nobody is a step ahead of another's next.
std::optional<std::string> wrong_steps(const sim::Values& values) {
  const auto agents = values.of<Agent>("agent");
  if (agents.empty() || !agents.front()->batched()) return std::nullopt;
  std::vector<int64_t> steps;
  for (const auto& observer : values.of<Observer>())
    if (observer->plays_for(agents.front().id)) steps.push_back(observer->steps());
  if (steps.empty()) return std::nullopt;
  const auto [fewest, most] = std::ranges::minmax(steps);
  if (most <= fewest + 1) return std::nullopt;
  return "an observer has made " + std::to_string(most) + " steps, and another " +
         std::to_string(fewest);
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 60); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "batch_rl";
  scenario.summary = "reinforcement learning: one pass of the policy answers all observers at once";
  scenario.options
      .integer("observers", {.full = 4,
                             .tiny = 2,
                             .min = 1,
                             .max = 1000,
                             .meaning = "workers with a cart-pole, who wait for each other",
                             .drawn_min = 1,
                             .drawn_max = 4})
      .integer("episodes", {.full = 300,
                            .tiny = 2,
                            .min = 1,
                            .max = 1'000'000,
                            .meaning = "the most; it stops when solved",
                            .drawn_min = 1,
                            .drawn_max = 3})
      .integer("steps", {500, 6, 1, 1'000'000, "of each observer in an episode"})
      .choice("form", {{"batched", "single"}, "one pass of the policy for all, or for each"});
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.invariants = {{"steps", wrong_steps}};
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::batch_rl
