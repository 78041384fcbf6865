#include "scenarios/storm/storm.h"

#include <ATen/Functions.h>

#include <chrono>
#include <list>
#include <memory>

#include "scenarios/devices.h"
#include "scenarios/storm/actor.h"
#include "scenarios/storm/device_values.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal {
namespace {

bool is_dynamic(const ScenarioRun& run) {
  const auto percent = static_cast<uint64_t>(run.options.integer("dynamic"));
  return storm::Dice(run.seed, hash_text("group")).happens(percent);
}

// Each worker's maps lead from a device to another of its peers, or to the same, as the seed says.
void have_devices(Program& program, const ScenarioRun& run) {
  program.state<storm::Pool>();
  std::vector<std::string> names;
  const auto workers = run.options.integer("workers");
  for (int64_t i = 0; i < workers; ++i) names.push_back("worker" + std::to_string(i));
  const auto devices = static_cast<uint64_t>(run.devices);
  const uint64_t shift = storm::Dice(run.seed, hash_text("maps")).draw(devices);
  map_devices(program, run.devices, names, static_cast<int>(shift));
}

Program storm_program(const ScenarioRun& run) {
  const int64_t operations = run.options.integer("operations");
  const auto workers = static_cast<uint32_t>(run.options.integer("workers"));
  // Of each life of a worker; they die with the program, after all workers have ended.
  auto kept = std::make_shared<std::list<std::vector<AutogradContext>>>();
  const bool dynamic = is_dynamic(run);
  const bool recordable = run.options.integer("recordable") == 1;
  static const Program functions(storm::functions());  // what a run shares with all others
  Program program = functions;
  program.worker(
      "worker",
      [operations, dynamic, recordable, seed = run.seed, &reporter = run.reporter,
       kept](Worker& worker) {
        storm::Actor actor(worker, seed, kept->emplace_back(), recordable);
        if (dynamic) actor.be_known();
        actor.act(operations);
        if (dynamic) actor.see_others_come();
        // A worker that was restarted says the same once more.
        if (reporter.results.tensors().contains(worker.name())) return;
        reporter.results.tensor(
            worker.name(),
            at::full({1}, static_cast<int64_t>(actor.digest() >> 1), at::TensorOptions(at::kLong)));
        // A worker that comes and goes when it likes is no failure.
        reporter.results.number(
            (dynamic ? "unserved operations of " : "lost operations of ") + worker.name(),
            static_cast<double>(actor.lost_operations()));
      },
      Count{workers});
  program.state<storm::Accounts>(run.seed);
  if (run.devices > 0) have_devices(program, run);
  if (dynamic) program.dynamic();
  return program;
}

// The level of faults is part of what the seed draws.
ScenarioFaults draw_storm_faults(const Options&, Seed seed) {
  storm::Dice dice(seed, hash_text("faults"));
  ScenarioFaults plan;
  const uint64_t level = dice.draw(10);
  plan.faults = level < 1   ? sim::FaultLevel::none
                : level < 5 ? sim::FaultLevel::mild
                            : sim::FaultLevel::hostile;
  plan.crashes = dice.happens(40) ? 1 + dice.draw(2) : 0;
  plan.long_partitions = dice.happens(40);
  plan.long_pauses = dice.happens(20);
  if (plan.crashes > 0 && dice.happens(50)) plan.restarts = sim::Restart::drawn;
  return plan;
}

// Small limits make common what is rare. Where no time-out helps out, a call that is lost is a run
// that does not go on; nor does it while a shutdown cannot end, as one cannot where two workers
// have lost each other and a third neither.
void draw_storm_limits(NodeOptions& node, const ScenarioFaults& plan, Seed seed) {
  storm::Dice dice(seed, hash_text("limits"));
  if (dice.happens(40)) node.window_frames = 2 + dice.draw(4);
  if (dice.happens(40)) node.execution_limit = static_cast<uint32_t>(1 + dice.draw(2));
  if (dice.happens(50)) node.rpc_timeout = {};
  if (dice.happens(30)) node.window_bytes = uint64_t{16 * 1024} << dice.draw(6);
  if (dice.happens(30)) node.peer_timeout = std::chrono::seconds(10 + dice.draw(20));
  if (dice.happens(30)) node.heartbeat = node.peer_timeout / static_cast<int64_t>(3 + dice.draw(6));
  if (dice.happens(50)) node.marked_max = 1 + dice.draw(3);
  if (!plan.long_partitions && !plan.long_pauses) node.shutdown_timeout = std::chrono::hours(1);
}

// Operations may be lost only where a worker could be.
std::optional<std::string> judge_storm(const Results& results, const ScenarioFaults& plan) {
  return storm::unexcused(results, plan, "lost operations");
}

}  // namespace

Scenario storm_scenario() {
  Scenario scenario;
  scenario.name = "storm";
  scenario.summary = "random calls, references and gradients, checked against a sequential model";
  scenario.options
      .integer("operations", {.full = 40,
                              .tiny = 8,
                              .min = 1,
                              .max = 100'000,
                              .meaning = "operations of each worker",
                              .drawn_min = 4,
                              .drawn_max = 12})
      .integer("workers", {.full = 4,
                           .tiny = 3,
                           .min = 1,
                           .max = 64,
                           .meaning = "workers of the group",
                           .drawn_min = 2,
                           .drawn_max = 5})
      .integer("dynamic", {.full = 0,
                           .tiny = 0,
                           .min = 0,
                           .max = 100,
                           .meaning = "per cent of seeds whose workers come and go when they like",
                           .drawn_min = 0,
                           .drawn_max = 40})
      .integer("recordable", {.full = 0,
                              .tiny = 0,
                              .min = 0,
                              .max = 1,
                              .meaning = "1: it looks at nothing that a record does not hold",
                              .drawn_min = 0,
                              .drawn_max = 0});
  scenario.uses_devices = true;
  scenario.program = storm_program;
  scenario.draw_faults = draw_storm_faults;
  scenario.adjust_node = draw_storm_limits;
  scenario.verdict = judge_storm;
  scenario.allows_leaks = true;  // shelves that keep each other, contexts that only a shutdown ends
  return scenario;
}

}  // namespace rehearsal
