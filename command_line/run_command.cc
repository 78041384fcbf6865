// `run`: one run, in the simulator or as processes, and its report.
#include <iostream>

#include "command_line/commands.h"
#include "command_line/debugger.h"
#include "command_line/explanation.h"
#include "command_line/junit.h"
#include "command_line/output_files.h"
#include "command_line/printed.h"
#include "command_line/terminal.h"
#include "core/base/printable.h"
#include "sim/hunt/crash_report.h"

namespace rehearsal::command_line {
namespace {

// Alone on the last line is the command that repeats it.
std::string failed_text(const FailedRun& run, const sim::RunFailure& failure) {
  std::string text;
  if (run.net == Net::sim)
    text = "to look inside: " + debugger() + " --args, in front of the last line\n";
  return text + run.scenario + " FAILED with seed " + std::to_string(run.seed) + ": " +
         to_text(failure) + "\n" + run.replay + "\n";
}

// Written if the process dies under the simulated cluster.
sim::LastWords last_words(const Tool& tool, const RunSettings& settings) {
  const std::string replay = replay_command(tool.program, settings);
  RunOutcome outcome;
  outcome.failure = sim::RunFailure{"@oracle@", "@object@", "@message@"};
  sim::LastWords words;
  words.standard_error = failed_text(
      {settings.scenario->name, settings.seed.value, replay, settings.net}, *outcome.failure);
  if (tool.json) words.standard_output = printed(report_json(settings, outcome, 0, replay)) + "\n";
  return words;
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
  if (settings.net == Net::tcp) return run_processes(tool, settings, reporter);
  const sim::CrashReport crash_report(last_words(tool, settings));
  return tool.backends.simulate(settings, reporter);
}

}  // namespace

void print_failure(const Tool& tool, const RunSettings& settings, const sim::RunFailure& failure) {
  print_failed_run(tool,
                   {settings.scenario->name, settings.seed.value,
                    replay_command(tool.program, settings), settings.net},
                   failure);
}

void print_failed_run(const Tool& tool, const FailedRun& run, const sim::RunFailure& failure) {
  (tool.json ? std::cerr : std::cout) << printable_lines(failed_text(run, failure)) << std::flush;
}

int run(const Tool& tool, const RunCommand& command) {
  RunSettings settings = command.settings;
  check_output_file("--junit", command.junit_file);
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
  OutputFiles files;
  files.note(outcome.unwritten);
  files.write(command.junit_file,
              junit_text("run", {{.name = settings.scenario->name,
                                  .seconds = wall_seconds,
                                  .failure = outcome.ok ? std::nullopt : outcome.failure,
                                  .replay = replay,
                                  .properties = {{"seed", std::to_string(settings.seed.value)},
                                                 {"net", name_of(settings.net)},
                                                 {"result_digest", outcome.results.digest()}}}}));
  if (tool.json) {
    std::cout << printed(report_json(settings, outcome, wall_seconds, replay)) << std::endl;
  } else {
    std::cout << report_text(settings, outcome, wall_seconds);
  }
  if (outcome.ok) return files.end(tool, "run", kHolds);
  const sim::RunFailure failure = outcome.failure.value_or(sim::RunFailure{});
  static_cast<void>(explain_failure(tool, settings, failure, /*with_spans=*/false));
  print_failure(tool, settings, failure);
  return files.end(tool, "run", kFailed);
}

}  // namespace rehearsal::command_line
