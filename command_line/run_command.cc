// `run`: one run, in the simulator or as processes, and its report.
#include <iostream>

#include "command_line/commands.h"
#include "command_line/explanation.h"
#include "command_line/junit.h"
#include "command_line/terminal.h"
#include "sim/hunt/crash_report.h"

namespace rehearsal::command_line {
namespace {

// The texts written if the process dies under the simulated cluster.
sim::CrashReport::Texts crash_texts(const Tool& tool, const RunSettings& settings) {
  constexpr const char* kSignalMark = "@signal@";
  const std::string replay = replay_command(tool.program, settings);
  sim::CrashReport::Texts texts;
  texts.standard_error =
      settings.scenario->name + " FAILED: the process of the run ended\n" + replay + "\n";
  if (!tool.json) return texts;
  RunOutcome outcome;
  outcome.failure = sim::RunFailure{"process", std::string("signal ") + kSignalMark,
                                    "the process of the run ended; see standard error"};
  const std::string report = report_json(settings, outcome, 0, replay).dump(2) + "\n";
  const size_t mark = report.find(kSignalMark);
  texts.standard_output = report.substr(0, mark);
  texts.standard_output_end = report.substr(mark + std::string(kSignalMark).size());
  return texts;
}

Reporter terminal_reporter(const Tool& tool, ProgressLine& progress) {
  Reporter reporter;
  reporter.line = [&progress, json = tool.json](const std::string& text) {
    progress.clear();
    (json ? std::cerr : std::cout) << text << std::endl;
  };
  reporter.progress = [&progress](const std::string& text) { progress.show(text); };
  return reporter;
}

RunOutcome carry_out(const Tool& tool, const RunSettings& settings) {
  ProgressLine progress;
  Reporter reporter = terminal_reporter(tool, progress);
  if (settings.net == Net::tcp) return run_processes(settings, reporter);
  const sim::CrashReport crash_report(crash_texts(tool, settings));
  return tool.backends.simulate(settings, reporter);
}

}  // namespace

void print_failure(const Tool& tool, const RunSettings& settings, const sim::RunFailure& failure) {
  print_failed_run(
      tool, {settings.scenario->name, settings.seed.value, replay_command(tool.program, settings)},
      failure);
}

void print_failed_run(const Tool& tool, const FailedRun& run, const sim::RunFailure& failure) {
  (tool.json ? std::cerr : std::cout)
      << run.scenario << " FAILED with seed " << run.seed << ": " << to_text(failure) << "\n"
      << run.replay << std::endl;
}

int run(const Tool& tool, const RunCommand& command) {
  RunSettings settings = command.settings;
  check_junit_file(command.junit_file);
  std::optional<Comparison> comparison;
  if (!command.compare_file.empty()) comparison = read_comparison(command.compare_file);
  const Stopwatch stopwatch;
  RunOutcome outcome = carry_out(tool, settings);
  if (!outcome.strategy.empty()) settings.strategy = outcome.strategy;
  if (outcome.ok && comparison) {
    if (const auto difference = first_difference(*comparison, outcome.results)) {
      outcome.ok = false;
      outcome.failure = sim::RunFailure{"comparison", "", "tensor " + *difference};
    }
  }
  const double wall_seconds = stopwatch.seconds();
  const std::string replay = replay_command(tool.program, settings);
  write_junit(command.junit_file, "run",
              {{.name = settings.scenario->name,
                .seconds = wall_seconds,
                .failure = outcome.ok ? std::nullopt : outcome.failure,
                .replay = replay,
                .properties = {{"seed", std::to_string(settings.seed.value)},
                               {"net", name_of(settings.net)},
                               {"result_digest", outcome.results.digest()}}}});
  if (tool.json) {
    std::cout << report_json(settings, outcome, wall_seconds, replay).dump(2) << std::endl;
  } else {
    std::cout << report_text(settings, outcome, wall_seconds);
  }
  if (outcome.ok) return kHolds;
  const sim::RunFailure failure = outcome.failure.value_or(sim::RunFailure{});
  static_cast<void>(explain_failure(tool, settings, failure));
  print_failure(tool, settings, failure);
  return kFailed;
}

}  // namespace rehearsal::command_line
