#include "scenarios/rl/rl.h"

#include <cstdio>

#include "core/api/worker.h"
#include "scenarios/devices.h"
#include "scenarios/rl/agent.h"
#include "sim/values.h"

namespace rehearsal::rl {
namespace {

constexpr int64_t kReportInterval = 10;

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Agent>("Agent")
      .method("select_action", &Agent::select_action)
      .method("report_reward", &Agent::report_reward);
  registry.type<Observer>("Observer")
      .constructor<int64_t, int64_t>()
      .method("run_episode", &Observer::run_episode);
  return registry;
}

struct Settings {
  int64_t observers;
  int64_t episodes;
  int64_t steps;
  Returns returns;
  Seed seed;
};

std::vector<RRef<Observer>> make_observers(Worker& worker, const Settings& settings) {
  std::vector<RRef<Observer>> observers;
  for (int64_t i = 0; i < settings.observers; ++i) {
    const uint64_t seed = mix(settings.seed.value, static_cast<uint64_t>(i)) >> 1;
    observers.push_back(worker.remote<Observer>("observer" + std::to_string(i), i, seed));
  }
  return observers;
}

void run_observers(const Worker& worker, const std::vector<RRef<Observer>>& observers,
                   const RRef<Agent>& agent, int64_t steps) {
  // An episode is a thousand calls one after another: on a slow network longer than a call may
  // take.
  const Calls unlimited = worker.with_timeout(Timeout::never());
  std::vector<Future<Unit>> running;
  for (const RRef<Observer>& observer : observers) {
    running.push_back(unlimited.rpc_async(observer, &Observer::run_episode, agent, steps));
  }
  static_cast<void>(worker.when_all(std::move(running)).wait());
}

std::string episode_text(int64_t episode, double last_reward, double running_reward) {
  char text[128];
  std::snprintf(text, sizeof text, "episode %5lld  last reward %5.0f  running reward %7.2f",
                static_cast<long long>(episode), last_reward, running_reward);
  return text;
}

void declare_results(Reporter& reporter, Agent& agent, int64_t episode) {
  for (const auto& parameter : agent.policy().named_parameters()) {
    reporter.results.tensor("policy." + parameter.key(), parameter.value());
  }
  reporter.results.number("episodes", static_cast<double>(episode));
  reporter.results.number("running_reward", agent.running_reward());
  const bool solved = agent.running_reward() > models::CartPole::kSolvedReward;
  reporter.results.number("solved", solved ? 1 : 0);
}

void agent_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  const RRef<Agent> agent =
      worker.rref(Agent(settings.observers, settings.returns, device_or_cpu(worker)));
  const std::vector<RRef<Observer>> observers = make_observers(worker, settings);
  double running_reward = 0;
  int64_t episode = 0;
  while (episode < settings.episodes && running_reward <= models::CartPole::kSolvedReward) {
    ++episode;
    run_observers(worker, observers, agent, settings.steps);
    const double last_reward =
        agent.with_local([](Agent& value) { return value.finish_episode(); });
    running_reward = agent.with_local([](Agent& value) { return value.running_reward(); });
    worker.note("running reward", running_reward);
    const std::string text = episode_text(episode, last_reward, running_reward);
    reporter.progress(text);
    if (episode % kReportInterval == 0) reporter.line(text);
  }
  if (running_reward > models::CartPole::kSolvedReward) {
    reporter.line("Solved! Running reward is now " + std::to_string(running_reward));
  }
  agent.with_local([&](Agent& value) { declare_results(reporter, value, episode); });
}

Program program(const ScenarioRun& run) {
  const Options& options = run.options;
  const Settings settings{
      .observers = options.integer("observers"),
      .episodes = options.integer("episodes"),
      .steps = options.integer("steps"),
      .returns = options.text("returns") == "joined" ? Returns::joined : Returns::separate,
      .seed = run.seed};
  Program program(functions());
  program.worker("agent", [settings, &reporter = run.reporter](Worker& worker) {
    agent_main(worker, settings, reporter);
  });
  program.worker(
      "observer", [](Worker&) {}, Count{static_cast<uint32_t>(settings.observers)});
  return program;
}

std::optional<std::string> wrong_episodes(const sim::Values& values) {
  for (const auto& agent : values.of<Agent>("agent"))
    if (const auto wrong = agent->contradiction()) return wrong;
  return std::nullopt;
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "rl";
  scenario.summary = "reinforcement learning: observers with a cart-pole each ask one agent";
  scenario.options.integer("observers", {2, 2, 1, 1000, "workers with a cart-pole", 1, 3})
      .integer("episodes", {4000, 2, 1, 1'000'000, "the most; it stops when solved"})
      .integer("steps", {models::CartPole::kStepsMax, 10, 1, models::CartPole::kStepsMax,
                         "the most in an episode"})
      .choice("returns",
              {{"joined", "separate"}, "joined as in the tutorial, or for each observer"});
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.invariants = {{"episodes", wrong_episodes}};
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::rl
