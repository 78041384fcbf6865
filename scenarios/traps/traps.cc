#include "scenarios/traps/traps.h"

#include "core/api/program.h"
#include "scenarios/storm/drawn_faults.h"
#include "scenarios/traps/lost.h"
#include "scenarios/traps/recorded.h"

namespace rehearsal::traps {
namespace {

void train(Worker& worker, Reporter& reporter) {
  const Ground ground = make_ground(worker);
  const auto compared = static_cast<double>(compare_recorded(ground));
  const auto told = static_cast<double>(step_into_traps(ground));
  reporter.results.number("gradients compared", compared);
  reporter.results.number("losses told", told);
}

Program program(const ScenarioRun& run) {
  Program program(functions());
  program.worker("trainer", [&reporter = run.reporter](Worker& worker) { train(worker, reporter); })
      .worker("near")
      .worker("far");
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 10, 0); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "traps";
  scenario.summary = "all ways to lose a gradient: each gives it, or tells which call has lost it";
  scenario.program = program;
  scenario.draw_faults = draw_faults;
  scenario.schedule_independent = true;
  return scenario;
}

}  // namespace rehearsal::traps
