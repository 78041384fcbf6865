// `explore`: every schedule of a small cluster, with few faults at any point.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "command_line/commands.h"
#include "command_line/terminal.h"
#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

std::string progress_text(const ExploreProgress& progress, double seconds) {
  std::ostringstream text;
  text << "explore: " << progress.schedules << " schedules, " << std::fixed << std::setprecision(0)
       << static_cast<double>(progress.schedules) / std::max(seconds, 1e-3) << " a second; faults "
       << progress.fault_sets + 1 << " of " << progress.fault_sets_all << ", about "
       << progress.part * 100 << " % of these";
  return text.str();
}

uint64_t total(const ExploreOutcome& outcome) {
  uint64_t schedules = 0;
  for (const ExploreOutcome::Row& row : outcome.rows) schedules += row.schedules;
  return schedules;
}

Json rows_json(const ExploreOutcome& outcome) {
  Json rows = Json::array();
  for (const ExploreOutcome::Row& row : outcome.rows)
    rows.push_back({{"faults", row.faults},
                    {"schedules", row.schedules},
                    {"stopped", row.stopped},
                    {"steps", row.steps}});
  return rows;
}

// The command that runs this schedule alone.
std::string schedule_command(const Tool& tool, const RunSettings& settings,
                             const std::string& schedule) {
  RunSettings plain = settings;
  plain.faults.reset();
  std::vector<std::string> arguments = run_arguments(plain);
  arguments[0] = "explore";
  arguments.insert(arguments.end(), {"--schedule", schedule});
  return shell_command(tool.program, arguments);
}

void print_failed(const Tool& tool, const RunSettings& settings, const sim::RunFailure& failure,
                  const std::string& schedule) {
  std::ostream& out = tool.json ? std::cerr : std::cout;
  out << to_text(failure) << "\n" << schedule_command(tool, settings, schedule) << std::endl;
}

void print_rows(const ExploreOutcome& outcome) {
  for (const ExploreOutcome::Row& row : outcome.rows)
    std::cout << "  " << std::left << std::setw(16)
              << (row.faults.empty() ? "no fault" : row.faults) << std::right << std::setw(10)
              << row.schedules << " schedules\n";
}

int run_given_schedule(const Tool& tool, const ExploreCommand& command) {
  RunOutcome outcome;
  try {
    outcome = tool.backends.run_schedule(command.settings, command.schedule);
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--schedule: ") + wrong.what());
  }
  const std::string replay = schedule_command(tool, command.settings, command.schedule);
  if (tool.json) {
    std::cout << report_json(command.settings, outcome, 0, replay).dump(2) << std::endl;
  } else if (outcome.ok) {
    std::cout << "explore: this schedule holds" << std::endl;
  }
  if (outcome.ok) return kHolds;
  print_failed(tool, command.settings, outcome.failure.value_or(sim::RunFailure{}),
               command.schedule);
  return kFailed;
}

}  // namespace

int explore(const Tool& tool, const ExploreCommand& command) {
  if (!command.schedule.empty()) return run_given_schedule(tool, command);
  const Stopwatch stopwatch;
  ProgressLine line;
  const ExploreOutcome outcome =
      tool.backends.explore(command.settings, [&](const ExploreProgress& progress) {
        line.show(progress_text(progress, stopwatch.seconds()));
        return command.seconds <= 0 || stopwatch.seconds() < command.seconds;
      });
  line.clear();
  const double seconds = stopwatch.seconds();
  if (tool.json) {
    Json json{{"command", "explore"},        {"scenario", command.settings.scenario->name},
              {"ok", !outcome.failure},      {"complete", outcome.complete},
              {"schedules", total(outcome)}, {"faults", rows_json(outcome)},
              {"wall_seconds", seconds}};
    if (outcome.failure)
      json["failure"] =
          to_json(*outcome.failure, schedule_command(tool, command.settings, outcome.schedule));
    std::cout << json.dump(2) << std::endl;
  } else {
    print_rows(outcome);
    std::cout << "explore: " << total(outcome) << " schedules in " << std::fixed
              << std::setprecision(1) << seconds << " s: "
              << (outcome.failure    ? "the last one fails"
                  : outcome.complete ? "all there are, and every one holds"
                                     : "every one holds; the time was over before all were run")
              << std::endl;
  }
  if (!outcome.failure) return kHolds;
  print_failed(tool, command.settings, *outcome.failure, outcome.schedule);
  return kFailed;
}

}  // namespace rehearsal::command_line
