// What carries a run out: the simulator and the real network, or what a test puts in their place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/command_line/outcome.h"

namespace rehearsal::command_line {

// Which real worker a process is, and where it meets the others. What is not said comes from the
// environment.
struct WorkerPlace {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> world_size;
  std::optional<std::string> rendezvous;  // env://, tcp://host:port or file:///path
};

struct Backends {
  // A whole cluster in this process. An error of the run is in the outcome.
  std::function<RunOutcome(const RunSettings&, Reporter&)> simulate;

  // One real worker in this process, from rendezvous to shutdown.
  std::function<RunOutcome(const RunSettings&, const WorkerPlace&, Reporter&)> serve;

  // Names that --strategy knows; the first is the default.
  std::vector<std::string> strategies;

  // Names that --mutant knows.
  std::vector<std::string> mutants;
};

// The simulator and the real network.
[[nodiscard]] Backends shipped_backends();

}  // namespace rehearsal::command_line
