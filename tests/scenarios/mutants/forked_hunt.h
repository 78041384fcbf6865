// A hunt without the tool's processes: each of those loads LibTorch, which takes longer than most
// mutants need to be found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command_line/backends.h"

namespace rehearsal::command_line {

// The runs of a hunt, simulated one after the other in a process that is forked from this one,
// since a run may end it.
class ForkedHunt {
 public:
  // REQUIRES: no other thread is in this process.
  explicit ForkedHunt(std::vector<Scenario> scenarios)
      : scenarios_(std::move(scenarios)), backends_(shipped_backends()) {}

  struct Found {
    std::vector<std::string> run;  // the words that repeat it: "run", the scenario, its flags
    std::string failure;           // without the stack of a run that ended its process
  };

  // The words are those of the tool. The first run that fails, or none.
  [[nodiscard]] std::optional<Found> hunt(const std::vector<std::string>& words) const;

  // The same for one run.
  [[nodiscard]] std::optional<Found> run(const std::vector<std::string>& words) const;

 private:
  // Gives the runs one by one, and nothing behind the last.
  using Runs = std::function<std::optional<RunSettings>()>;

  [[nodiscard]] std::optional<Found> first_failure(const Runs& runs) const;
  [[nodiscard]] int simulate(const Runs& runs, const std::string& settings_file,
                             const std::string& failure_file) const;

  const std::vector<Scenario> scenarios_;
  const Backends backends_;
};

}  // namespace rehearsal::command_line
