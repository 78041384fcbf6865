// The search of a hunt: its runs, handed out to child processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "command_line/coverage_text.h"
#include "command_line/hunt_learning.h"
#include "command_line/hunt_result.h"
#include "command_line/hunt_sharing.h"
#include "command_line/hunt_tasks.h"

namespace rehearsal::command_line {

// Command and tasks outlive it.
class HuntSearch {
 public:
  struct Found {
    size_t task = 0;
    RunSettings settings;  // as it was run
    RunOutcome outcome;
  };

  HuntSearch(const Tool& tool, const HuntCommand& command, const HuntTasks& tasks);

  // Runs until something fails, or nothing is left of the tasks or the budget. Returns the failure
  // with the smallest number. Runs that have not ended some time after the budget's are ended, and
  // told of; if no run has ended at all, the first of them has failed.
  [[nodiscard]] std::optional<Found> search();

  [[nodiscard]] double seconds() const { return stopwatch_.seconds(); }
  // By scenario.
  [[nodiscard]] const std::map<std::string, uint64_t>& runs() const { return runs_; }
  // By strategy; the default one has an empty name.
  [[nodiscard]] const std::map<std::string, Spent>& spent() const { return spent_; }
  // Of the pairs that came up, if the command asks for them.
  [[nodiscard]] const CoverageCounts& coverage() const { return coverage_; }
  // Of each of the command's scenarios, if they share the time.
  [[nodiscard]] std::vector<HuntSharing::Row> shares() const;

 private:
  [[nodiscard]] bool tasks_left() const;
  [[nodiscard]] bool knows_enough() const {
    return !tasks_.learns || learning_.ready_for(next_task_);
  }
  void hand_out();
  [[nodiscard]] RunSettings next_settings();
  [[nodiscard]] bool is_out_of_time();
  void end_unfinished();
  void take(Crew::Done& done);
  void count_spent(const RunSettings& settings, const RunOutcome& outcome);
  void show_progress();

  const HuntCommand& command_;
  const HuntTasks& tasks_;
  Crew crew_;
  Stopwatch stopwatch_;
  const Spending spending_;
  Overtime overtime_;
  ProgressLine progress_;
  HuntLearning learning_;
  HuntSharing sharing_;
  std::map<size_t, RunSettings> given_;  // what is being run
  size_t next_task_ = 0;
  size_t done_count_ = 0;
  std::optional<Found> found_;
  std::map<std::string, uint64_t> runs_;
  std::map<std::string, Spent> spent_;
  CoverageCounts coverage_;
};

}  // namespace rehearsal::command_line
