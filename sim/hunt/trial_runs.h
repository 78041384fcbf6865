#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "sim/hunt/hunt.h"
#include "sim/run_report.h"

namespace rehearsal::sim {

class HistorySink;

// Carries out the runs of one hunt. The task outlives it.
class TrialRuns {
 public:
  explicit TrialRuns(const HuntTask& task) : task_(task) {}

  // The things to be taken down of a run, beside its report.
  struct Watch {
    std::ostream* event_lines = nullptr;
    HistorySink* history = nullptr;
    Trace* trace = nullptr;
  };

  // One run; nothing if it holds. If it ends its process, that says how to repeat it.
  [[nodiscard]] std::optional<RunFailure> attempt(const ChosenRun& run) {
    return attempt(run, Watch{});
  }
  [[nodiscard]] std::optional<RunFailure> attempt(const ChosenRun& run, const Watch& watch);

  // Of the last run; without workers if the scene made no cluster with the options that it was
  // given.
  [[nodiscard]] const RunReport& report() const { return report_; }
  [[nodiscard]] bool made_cluster() const { return !report_.workers.empty(); }

  // The same strategy with what it has to know of other runs. Runs the seed once more for one that
  // has to know how many events each chain has.
  [[nodiscard]] StrategySettings taught(const ChosenRun& run);

  // From now on a run ends when `is_over` says so, and counts as one that holds. Null: none does.
  void give_up_when(std::function<bool()> is_over) { is_over_ = std::move(is_over); }
  // Whether the last run was given up.
  [[nodiscard]] bool gave_up() const { return gave_up_; }

  [[nodiscard]] const HuntTask& task() const { return task_; }

 private:
  [[nodiscard]] std::optional<RunFailure> attempt_with(const ChosenRun& run,
                                                       ClusterOptions options);

  const HuntTask& task_;
  RunReport report_;
  std::function<bool()> is_over_;
  bool gave_up_ = false;
  uint64_t steps_max_ = 0;  // the most choices that a strategy had in a run so far
};

}  // namespace rehearsal::sim
