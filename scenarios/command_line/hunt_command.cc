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
#include "scenarios/command_line/hunt_tasks.h"
#include "scenarios/command_line/run_file.h"
#include "scenarios/wrong_use.h"

namespace rehearsal::command_line {
namespace {

// What one strategy has been given.
struct Spent {
  uint64_t runs = 0;
  uint64_t decisions = 0;  // events of workers
};

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
    Spent& spent = spent_[tasks_.settings_of(done.task).strategy];
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
  std::map<std::string, Spent> spent_;
};

const std::string& strategy_name(const Tool& tool, const std::string& strategy) {
  return strategy.empty() ? tool.backends.strategies.front() : strategy;
}

Json spent_json(const Tool& tool, const Hunt& hunt) {
  Json json = Json::object();
  for (const auto& [strategy, spent] : hunt.spent())
    json[strategy_name(tool, strategy)] = {{"runs", spent.runs}, {"decisions", spent.decisions}};
  return json;
}

// "hunt: pct 600 runs, 1234567 decisions; …"
void print_spent(const Tool& tool, const Hunt& hunt) {
  const char* separator = "hunt: ";
  for (const auto& [strategy, spent] : hunt.spent()) {
    std::cout << separator << strategy_name(tool, strategy) << " " << spent.runs << " runs, "
              << spent.decisions << " decisions";
    separator = "; ";
  }
  std::cout << std::endl;
}

Json hunt_json(const Tool& tool, const HuntCommand& command, const Hunt& hunt) {
  Json names = Json::array();
  for (const RunSettings& settings : command.scenarios) names.push_back(settings.scenario->name);
  return {{"command", "hunt"},
          {"scenarios", names},
          {"ok", true},
          {"runs", hunt.done_count()},
          {"strategies", spent_json(tool, hunt)},
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

// The failure as it was found, then as small as it could be made. The last line repeats it.
void report_found(const Tool& tool, const HuntCommand& command, const Hunt& search,
                  const RunSettings& settings, const RunOutcome& outcome) {
  const Failure failure = outcome.failure.value_or(Failure{});
  const std::string as_found = replay_command(tool.program, settings);
  const std::optional<Shrunk> shrunk = shrink_found(tool, command, settings, failure);
  const RunSettings& smallest = shrunk ? shrunk->settings : settings;
  const Failure& last = shrunk ? shrunk->failure : failure;
  Json report = report_json(settings, outcome, search.seconds(), as_found);
  if (shrunk) report["shrunk"] = to_json(last, replay_command(tool.program, smallest));
  leave_files(command, report, smallest, last);
  Json json = hunt_json(tool, command, search);
  json["ok"] = false;
  json["scenario"] = settings.scenario->name;
  json["seed"] = settings.seed.value;
  json["failure"] = to_json(last, replay_command(tool.program, smallest));
  json["as_found"] = as_found;
  if (tool.json) std::cout << json.dump(2) << std::endl;
  if (shrunk) (tool.json ? std::cerr : std::cout) << "found by: " << as_found << "\n";
  leave_pictures(command, explain_failure(tool, smallest, last));
  print_failure(tool, smallest, last);
}

void report_none(const Tool& tool, const HuntCommand& command, const Hunt& search) {
  if (tool.json) {
    std::cout << hunt_json(tool, command, search).dump(2) << std::endl;
    return;
  }
  std::cout << "hunt: " << search.done_count() << " runs hold, in " << std::fixed
            << std::setprecision(1) << search.seconds() << " s" << std::endl;
  if (search.spent().size() > 1) print_spent(tool, search);
}

}  // namespace

int hunt(const Tool& tool, const HuntCommand& command) {
  make_directory(command.directory);
  const HuntTasks tasks = command.crash_sweep ? crash_sweep_tasks(command, tool.backends)
                                              : seed_tasks(command, tool.backends);
  Hunt search(command, tasks);
  const std::optional<Found> found = search.search();
  if (!found) {
    report_none(tool, command, search);
    return kHolds;
  }
  report_found(tool, command, search, tasks.settings_of(found->task), found->outcome);
  return kFailed;
}

}  // namespace rehearsal::command_line
