// `hunt`: many seeds on all cores; the first failure, in the order of seeds, is reported.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/explanation.h"
#include "scenarios/command_line/hunt_result.h"
#include "scenarios/command_line/hunt_tasks.h"
#include "scenarios/command_line/junit.h"
#include "scenarios/command_line/run_file.h"
#include "scenarios/wrong_use.h"

namespace rehearsal::command_line {
namespace {

struct Found {
  size_t task;
  RunOutcome outcome;
};

class Hunt {
 public:
  Hunt(const HuntCommand& command, const HuntTasks& tasks)
      : command_(command), tasks_(tasks), crew_(make_crew(command.jobs)) {
    for (const RunSettings& settings : command.scenarios) runs_[settings.scenario->name] = 0;
  }

  std::optional<Found> search() {
    while (true) {
      if (!found_) hand_out();
      if (!crew_.busy()) return std::move(found_);
      for (Crew::Done& done : crew_.wait()) take(done);
      show_progress();
    }
  }

  double seconds() const { return stopwatch_.seconds(); }
  const std::map<std::string, uint64_t>& runs() const { return runs_; }
  // By strategy; the default one has an empty name.
  const std::map<std::string, Spent>& spent() const { return spent_; }

 private:
  bool tasks_left() const {
    const bool in_time = command_.seed_count || stopwatch_.seconds() < command_.seconds;
    return in_time && (!tasks_.count || next_task_ < *tasks_.count);
  }

  void hand_out() {
    for (size_t child = 0; child < crew_.size(); ++child) {
      while (crew_.can_take(child) && tasks_left()) {
        crew_.give(child, next_task_, tasks_.settings_of(next_task_));
        ++next_task_;
      }
    }
  }

  void take(Crew::Done& done) {
    ++done_count_;
    count_spent(done);
    if (done.outcome.ok || (found_ && found_->task < done.task)) return;
    found_ = Found{done.task, std::move(done.outcome)};
  }

  void count_spent(const Crew::Done& done) {
    const RunSettings settings = tasks_.settings_of(done.task);
    ++runs_[settings.scenario->name];
    Spent& spent = spent_[settings.strategy];
    ++spent.runs;
    for (const auto& [worker, decisions] : done.outcome.decisions) spent.decisions += decisions;
  }

  void show_progress() {
    std::ostringstream text;
    text << "hunt: " << done_count_ << " runs, " << std::fixed << std::setprecision(0)
         << static_cast<double>(done_count_) / std::max(seconds(), 1e-3) << " a second";
    if (tasks_.count) text << ", of " << *tasks_.count;
    progress_.show(text.str());
  }

  const HuntCommand& command_;
  const HuntTasks& tasks_;
  Crew crew_;
  Stopwatch stopwatch_;
  ProgressLine progress_;
  size_t next_task_ = 0;
  size_t done_count_ = 0;
  std::optional<Found> found_;
  std::map<std::string, uint64_t> runs_;  // by scenario
  std::map<std::string, Spent> spent_;
};

HuntResult result_of(const Tool& tool, const HuntCommand& command, const Hunt& search) {
  HuntResult result{.identity = identity_of(command),
                    .runs = search.runs(),
                    .spent = {},
                    .wall_seconds = search.seconds(),
                    .shard_seconds = search.seconds(),
                    .failure = std::nullopt};
  for (const auto& [strategy, spent] : search.spent())
    result.spent[strategy.empty() ? tool.backends.strategies.front() : strategy] = spent;
  return result;
}

// An output directory that cannot be written is wrong use before the hunt, not after it.
void make_directory(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!std::ofstream(std::filesystem::path(directory) / "failure.json")) {
    throw WrongUse("--out " + directory + ": cannot be written; name another directory");
  }
  std::filesystem::remove(std::filesystem::path(directory) / "failure.json", error);
}

// A run that ended its process is not made to do so again and again.
std::optional<Shrunk> shrink_found(const Tool& tool, const HuntCommand& command,
                                   const RunSettings& settings, const Failure& failure) {
  if (command.shrink_seconds <= 0 || failure.oracle == "process" || !tool.backends.shrink)
    return std::nullopt;
  std::optional<Shrunk> shrunk = shrink_run(tool, settings, command.shrink_seconds);
  if (!shrunk)
    std::cerr << "hunt: the same run held when it was run again; 'rehearsal verify "
              << settings.scenario->name << "' says more" << std::endl;
  return shrunk;
}

void leave_files(const HuntCommand& command, const Json& report, const RunSettings& smallest,
                 const Failure& failure) {
  if (command.directory.empty()) return;
  const std::filesystem::path directory = command.directory;
  std::ofstream(directory / "failure.json") << report.dump(2) << "\n";
  write_run_file((directory / "failure.run").string(), smallest, failure);
}

void leave_pictures(const HuntCommand& command, const std::optional<Explanation>& explanation) {
  if (command.directory.empty() || !explanation) return;
  const std::filesystem::path directory = command.directory;
  write_pictures(*explanation, (directory / "failure.html").string(),
                 (directory / "failure.trace.json").string());
}

std::string crash_text(const RunSettings& settings) {
  if (!settings.crash_at) return "";
  return settings.crash_at->worker + ":" + std::to_string(settings.crash_at->decision);
}

struct FoundRun {
  const RunSettings& settings;
  const RunOutcome& outcome;
  double wall_seconds = 0;  // until it was found
};

// The failure as it was found, then as small as it could be made.
HuntFailure failure_of(const Tool& tool, const HuntCommand& command, const FoundRun& found) {
  const auto& [settings, outcome, wall_seconds] = found;
  const Failure failure = outcome.failure.value_or(Failure{});
  const std::string as_found = replay_command(tool.program, settings);
  const std::optional<Shrunk> shrunk = shrink_found(tool, command, settings, failure);
  const RunSettings& smallest = shrunk ? shrunk->settings : settings;
  const HuntFailure last{.scenario = settings.scenario->name,
                         .seed = settings.seed.value,
                         .crash_at = crash_text(settings),
                         .failure = shrunk ? shrunk->failure : failure,
                         .replay = replay_command(tool.program, smallest),
                         .as_found = as_found};
  Json report = report_json(settings, outcome, wall_seconds, as_found);
  if (shrunk) report["shrunk"] = to_json(last.failure, last.replay);
  leave_files(command, report, smallest, last.failure);
  leave_pictures(command, explain_failure(tool, smallest, last.failure));
  return last;
}

}  // namespace

int hunt(const Tool& tool, const HuntCommand& command) {
  make_directory(command.directory);
  check_junit_file(command.junit_file);
  const HuntTasks tasks = command.crash_sweep ? crash_sweep_tasks(command, tool.backends)
                                              : seed_tasks(command, tool.backends);
  Hunt search(command, tasks);
  const std::optional<Found> found = search.search();
  HuntResult result = result_of(tool, command, search);
  if (found) {
    const RunSettings settings = tasks.settings_of(found->task);
    result.failure = failure_of(tool, command, {settings, found->outcome, result.wall_seconds});
  }
  write_junit(command.junit_file, "hunt", junit_cases(result));
  return print_result(tool, result);
}

}  // namespace rehearsal::command_line
