// `hunt`: many seeds on all cores; the first failure, in the order of seeds, is reported.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/hunt_tasks.h"
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
      : command_(command), tasks_(tasks), crew_(make_crew(command.jobs)) {}

  std::optional<Found> search() {
    while (true) {
      if (!found_) hand_out();
      if (!crew_.busy()) return std::move(found_);
      for (Crew::Done& done : crew_.wait()) take(done);
      show_progress();
    }
  }

  size_t done_count() const { return done_count_; }
  double seconds() const { return stopwatch_.seconds(); }

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
    if (done.outcome.ok || (found_ && found_->task < done.task)) return;
    found_ = Found{done.task, std::move(done.outcome)};
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
};

Json hunt_json(const HuntCommand& command, const Hunt& hunt) {
  Json names = Json::array();
  for (const RunSettings& settings : command.scenarios) names.push_back(settings.scenario->name);
  return {{"command", "hunt"},
          {"scenarios", names},
          {"ok", true},
          {"runs", hunt.done_count()},
          {"wall_seconds", hunt.seconds()}};
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

}  // namespace

int hunt(const Tool& tool, const HuntCommand& command) {
  make_directory(command.directory);
  const HuntTasks tasks = command.crash_sweep ? crash_sweep_tasks(command) : seed_tasks(command);
  Hunt search(command, tasks);
  const std::optional<Found> found = search.search();
  Json json = hunt_json(command, search);
  if (!found) {
    if (tool.json) {
      std::cout << json.dump(2) << std::endl;
    } else {
      std::cout << "hunt: " << search.done_count() << " runs hold, in " << std::fixed
                << std::setprecision(1) << search.seconds() << " s" << std::endl;
    }
    return kHolds;
  }
  const RunSettings settings = tasks.settings_of(found->task);
  const Failure failure = found->outcome.failure.value_or(Failure{});
  const std::string replay = replay_command(tool.program, settings);
  json["ok"] = false;
  json["scenario"] = settings.scenario->name;
  json["seed"] = settings.seed.value;
  json["failure"] = to_json(failure, replay);
  if (!command.directory.empty()) {
    std::ofstream file(std::filesystem::path(command.directory) / "failure.json");
    file << report_json(settings, found->outcome, search.seconds(), replay).dump(2) << "\n";
  }
  if (tool.json) std::cout << json.dump(2) << std::endl;
  print_failure(tool, settings, failure);
  return kFailed;
}

}  // namespace rehearsal::command_line
