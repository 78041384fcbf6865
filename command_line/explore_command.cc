// `explore`: every schedule of a small cluster, with few faults at any point.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "command_line/commands.h"
#include "command_line/coverage_text.h"
#include "command_line/explanation.h"
#include "command_line/failure_folder.h"
#include "command_line/output_files.h"
#include "command_line/output_folder.h"
#include "command_line/printed.h"
#include "command_line/terminal.h"

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

// Nothing was looked at, which must not pass for good news.
bool is_unfinished(const ExploreOutcome& outcome) {
  return !outcome.failure && !outcome.complete && total(outcome) == 0;
}

std::string summary(const ExploreOutcome& outcome, double seconds) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1);
  if (is_unfinished(outcome)) {
    text << "not one schedule had ended when the budget was spent, after " << seconds
         << " s: give it more, or make the program smaller";
    return text.str();
  }
  text << total(outcome) << " schedules in " << seconds << " s: "
       << (outcome.failure    ? "the last one fails"
           : outcome.complete ? "all there are, and every one holds"
                              : "every one holds; the budget was spent before all were run");
  return text.str();
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

// Of one run: what it was told, what a failure leaves, and the command that repeats it.
int report_failed(const Tool& tool, const ExploreCommand& command, const RunSettings& run,
                  const RunOutcome& outcome) {
  const sim::RunFailure failure = outcome.failure.value_or(sim::RunFailure{});
  const std::string replay = replay_command(tool.program, run);
  OutputFiles files;
  files.note(outcome.unwritten);
  remove_pictures(command.directory);
  leave_run(files, command.directory, report_json(run, outcome, 0, replay), run, failure);
  const bool keeps = !command.directory.empty();
  leave_pictures(files, command.directory,
                 explain_failure(tool, run, failure, /*with_spans=*/keeps));
  std::ostream& out = tool.json ? std::cerr : std::cout;
  out << to_text(failure) << "\n" << replay << std::endl;
  return files.end(tool, "explore", kFailed);
}

void print_rows(const ExploreOutcome& outcome) {
  for (const ExploreOutcome::Row& row : outcome.rows)
    std::cout << "  " << std::left << std::setw(16)
              << (row.faults.empty() ? "no fault" : row.faults) << std::right << std::setw(10)
              << row.schedules << " schedules\n";
}

int run_given_schedule(const Tool& tool, const ExploreCommand& command) {
  Reporter silent{.line = [](const std::string&) {}, .progress = [](const std::string&) {}};
  const RunOutcome outcome = tool.backends.simulate(command.settings, silent);
  if (tool.json) {
    const std::string replay = replay_command(tool.program, command.settings);
    std::cout << printed(report_json(command.settings, outcome, 0, replay)) << std::endl;
  } else if (outcome.ok) {
    std::cout << "explore: this schedule holds" << std::endl;
  }
  if (!outcome.ok) return report_failed(tool, command, command.settings, outcome);
  OutputFiles files;
  files.note(outcome.unwritten);
  return files.end(tool, "explore", kHolds);
}

}  // namespace

int explore(const Tool& tool, const ExploreCommand& command) {
  make_folder("--out", command.directory);
  if (!command.settings.schedule.empty()) return run_given_schedule(tool, command);
  const Stopwatch stopwatch;
  const Spending spending(command.budget);
  ProgressLine line;
  const ExploreOutcome outcome =
      tool.backends.explore(command.settings, [&](const ExploreProgress& progress) {
        line.show(progress_text(progress, stopwatch.seconds()));
        return command.budget.empty() || spending.left(progress.schedules);
      });
  line.clear();
  const double seconds = stopwatch.seconds();
  RunSettings failing = command.settings;
  failing.schedule = outcome.schedule;
  if (tool.json) {
    Json json{{"command", "explore"},
              {"scenario", command.settings.scenario->name},
              {"ok", !outcome.failure && !is_unfinished(outcome)},
              {"complete", outcome.complete},
              {"schedules", total(outcome)},
              {"faults", rows_json(outcome)},
              {"wall_seconds", seconds}};
    if (command.settings.tell_coverage) json["coverage"] = coverage_json(outcome.coverage);
    if (outcome.failure)
      json["failure"] = to_json(*outcome.failure, replay_command(tool.program, failing));
    std::cout << printed(json) << std::endl;
  } else {
    if (command.settings.tell_coverage) std::cout << coverage_text(outcome.coverage);
    print_rows(outcome);
    std::cout << "explore: " << summary(outcome, seconds) << std::endl;
  }
  if (!outcome.failure) return is_unfinished(outcome) ? kFailed : kHolds;
  RunOutcome failed;
  failed.failure = outcome.failure;
  return report_failed(tool, command, failing, failed);
}

}  // namespace rehearsal::command_line
