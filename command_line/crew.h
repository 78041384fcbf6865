// Child processes that simulate runs side by side, each with a short queue of its own.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "command_line/child_process.h"
#include "command_line/outcome.h"
#include "command_line/terminal.h"

namespace rehearsal::command_line {

// Of wall time: a simulated run that takes longer hangs.
inline constexpr double kRunSecondsMax = 300;

class Crew {
 public:
  struct Done {
    size_t child;
    size_t task;
    RunOutcome outcome;
  };

  // One child for each setup. A run that takes longer than `run_seconds_max` of wall time is ended.
  // A child's standard error says why it died; it is also written to ours if `errors` says so.
  enum class Errors { shown, hidden };
  Crew(std::vector<ChildSetup> setups, double run_seconds_max, Errors errors);

  [[nodiscard]] size_t size() const { return members_.size(); }

  // A child takes a second run before it has answered the first, so that it never waits.
  [[nodiscard]] bool can_take(size_t child) const;
  [[nodiscard]] bool busy() const;

  // Processor time of the children that live, in seconds.
  [[nodiscard]] double processor_seconds() const;

  // The runs to come are expected to hang: each is ended as soon as that is all but certain.
  void expect_hangs() { expects_hangs_ = true; }

  // `task` is the caller's number for this run. REQUIRES: can_take(child).
  void give(size_t child, size_t task, const RunSettings& settings);

  // Ends the runs that have been given and are not done: nothing is heard of them any more.
  void abandon();

  // Waits for something to happen, a short time at most, and returns what is done. A child that
  // died or took too long gives an outcome that says so, and is replaced. Throws std::runtime_error
  // if a child could not be started: of that no run is the cause.
  [[nodiscard]] std::vector<Done> wait();

 private:
  struct Task {
    size_t number;
    Json request;
  };
  struct Member {
    ChildSetup setup;
    std::unique_ptr<ChildProcess> process;
    std::deque<Task> tasks;  // the first one runs
    Stopwatch since_progress;
    std::string errors;  // the end of what the process has written to its standard error
  };

  void start(Member& member);
  void take_errors(Member& member);
  void take_reports(size_t child, std::vector<Done>& done);
  void replace(size_t child, const std::string& why, std::vector<Done>& done);

  double run_seconds_max_;
  Errors errors_;
  bool expects_hangs_ = false;
  std::vector<Member> members_;
};

}  // namespace rehearsal::command_line
