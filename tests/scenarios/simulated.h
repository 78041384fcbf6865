// Runs a scenario in the simulator the way the command line does.
#pragma once

#include <string>
#include <vector>

#include "command_line/backends.h"

namespace rehearsal {

struct SimulatedRun {
  command_line::RunOutcome outcome;
  std::vector<std::string> lines;
};

// One run of many by the same backends, as in a hunt; with these faults and no others.
inline SimulatedRun simulated_by(const command_line::Backends& backends, const Scenario& scenario,
                                 uint64_t seed, const ScenarioFaults& faults,
                                 const std::vector<std::string>& assignments,
                                 const std::string& devices = "") {
  command_line::RunSettings settings;
  settings.scenario = &scenario;
  settings.options = scenario.options.parse(assignments, "tiny");
  settings.seed = Seed{seed};
  settings.faults = faults.faults;
  settings.crashes = faults.crashes;
  settings.restarts = faults.restarts;
  settings.long_partitions = faults.long_partitions;
  settings.long_pauses = faults.long_pauses;
  settings.devices = devices;
  SimulatedRun run;
  Reporter reporter;
  reporter.line = [&run](const std::string& text) { run.lines.push_back(text); };
  reporter.progress = [](const std::string&) {};
  run.outcome = backends.simulate(settings, reporter);
  return run;
}

inline SimulatedRun simulated_by(const command_line::Backends& backends, const Scenario& scenario,
                                 uint64_t seed, sim::FaultLevel faults,
                                 const std::vector<std::string>& assignments) {
  return simulated_by(backends, scenario, seed, ScenarioFaults{.faults = faults}, assignments);
}

inline SimulatedRun simulated(const Scenario& scenario, uint64_t seed, sim::FaultLevel faults,
                              const std::vector<std::string>& assignments = {}) {
  return simulated_by(command_line::shipped_backends(), scenario, seed, faults, assignments);
}

// Each worker has so many simulated devices.
inline SimulatedRun simulated_on_devices(int devices, const Scenario& scenario, uint64_t seed,
                                         const ScenarioFaults& faults,
                                         const std::vector<std::string>& assignments) {
  return simulated_by(command_line::shipped_backends(), scenario, seed, faults, assignments,
                      std::to_string(devices));
}

// The failure, for the message of an expectation.
inline std::string failure_text(const command_line::RunOutcome& outcome) {
  return outcome.failure ? to_text(*outcome.failure) : "holds";
}

}  // namespace rehearsal
