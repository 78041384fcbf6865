#include "command_line/explanation.h"

#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "command_line/crew.h"
#include "command_line/hunt_tasks.h"
#include "command_line/neighbours.h"
#include "command_line/program_name.h"
#include "command_line/temporary_folder.h"
#include "command_line/terminal.h"
#include "core/base/printable.h"
#include "sim/explain/history_file.h"
#include "sim/explain/html_page.h"
#include "sim/explain/perfetto_trace.h"
#include "sim/explain/text_diagram.h"
#include "sim/explain/what_decides.h"

namespace rehearsal::command_line {
namespace {

constexpr double kSearchSeconds = 10;   // for the runs beside a failure that hold
constexpr double kCompareSeconds = 10;  // with them; the first is compared in any case

// Of a run that is told, or of one beside it: these may go on where the other one failed.
constexpr double kToldSecondsMax = 60;

std::string title_of(const RunSettings& settings) {
  return settings.scenario->name + ", seed " + std::to_string(settings.seed.value) +
         (settings.schedule.empty() ? "" : ", schedule " + settings.schedule);
}

// Runs in a child process, and takes down what happens.
class Historian {
 public:
  explicit Historian(const Tool& tool)
      : crew_(make_crew(tool, 1, Crew::Errors::hidden, kToldSecondsMax)) {}

  void expect_hangs() { crew_.expect_hangs(); }

  RunOutcome attempt(const RunSettings& settings) {
    crew_.give(0, 0, settings);
    while (true)
      for (Crew::Done& done : crew_.wait()) return std::move(done.outcome);
  }

  // Empty if the run left no history, or could not write all of it, as its outcome says.
  std::optional<sim::Chronicle> chronicle_of(RunSettings settings, RunOutcome& outcome) {
    settings.history_file = folder_.file("history");
    outcome = attempt(settings);
    std::ifstream file(settings.history_file);
    if (!outcome.unwritten.empty() || !file || file.peek() == std::ifstream::traits_type::eof())
      return std::nullopt;
    return sim::chronicle_of(sim::read_history(file));
  }

  // The spans of the run that was told last; empty: it left none.
  std::string spans() const {
    std::ostringstream text;
    text << std::ifstream(folder_.file("spans")).rdbuf();
    return text.str();
  }
  std::string spans_file() const { return folder_.file("spans"); }

 private:
  const TemporaryFolder folder_;
  Crew crew_;
};

// By all neighbours, compared as far as there is time.
sim::WhatDecides what_decides(Historian& historian, const sim::Chronicle& failing,
                              const std::vector<Neighbour>& neighbours) {
  sim::WhatDecides decides(failing);
  const Stopwatch stopwatch;
  for (const Neighbour& neighbour : neighbours) {
    decides.add(neighbour.decider);
    if (stopwatch.seconds() > kCompareSeconds) continue;
    RunOutcome outcome;
    const auto holding = historian.chronicle_of(neighbour.holding, outcome);
    const auto near = historian.chronicle_of(neighbour.failing, outcome);
    if (holding && near) decides.compare(*near, *holding, neighbour.decider);
  }
  return decides;
}

}  // namespace

std::optional<Explanation> explain_run(const Tool& tool, const RunSettings& run, bool hangs,
                                       bool with_spans) {
  if (run.net != Net::sim) return std::nullopt;
  RunSettings settings = run;
  settings.trace_file.clear();  // It was written by the run itself.
  Historian historian(tool);
  if (hangs) historian.expect_hangs();
  settings.spans_file = with_spans ? historian.spans_file() : "";
  RunOutcome outcome;
  std::optional<sim::Chronicle> chronicle = historian.chronicle_of(settings, outcome);
  if (!outcome.unwritten.empty()) throw std::runtime_error(outcome.unwritten);
  if (!chronicle) return std::nullopt;
  settings.spans_file.clear();
  Explanation explanation{.failure = outcome.ok ? std::nullopt : std::move(outcome.failure),
                          .chronicle = std::move(*chronicle),
                          .subject = {.title = title_of(settings),
                                      .failure = {},
                                      .command = replay_command(tool.program, settings),
                                      .critical = {}},
                          .spans = historian.spans()};
  if (!explanation.failure) return explanation;
  explanation.subject.failure = to_text(*explanation.failure);
  const Attempt attempt = [&historian](const RunSettings& other) {
    return historian.attempt(other);
  };
  const std::vector<Neighbour> neighbours =
      neighbours_that_hold(tool, settings, attempt, kSearchSeconds);
  what_decides(historian, explanation.chronicle, neighbours).tell(explanation.subject);
  if (neighbours.empty() && settings.decisions.empty() &&
      (settings.benign || !settings.schedule.empty()))
    explanation.subject.notes = {"no order of events was found in which it holds"};
  return explanation;
}

std::optional<Explanation> explain_failure(const Tool& tool, const RunSettings& settings,
                                           const sim::RunFailure& failure, bool with_spans) {
  if (failure.oracle == "comparison" || failure.oracle == kUnfinished) return std::nullopt;
  std::optional<Explanation> explanation;
  try {
    explanation = explain_run(tool, settings, failure.oracle == "watchdog", with_spans);
  } catch (const std::exception& error) {  // The failure itself must still be reported.
    std::cerr << program_name(tool.program)
              << ": the run cannot be told: " << printable_lines(error.what()) << std::endl;
  }
  if (explanation)
    (tool.json ? std::cerr : std::cout)
        << sim::text_diagram(explanation->chronicle, explanation->subject) << std::flush;
  return explanation;
}

void write_pictures(OutputFiles& files, const Explanation& explanation,
                    const std::string& html_file, const std::string& perfetto_file) {
  if (!html_file.empty())
    files.write(html_file, sim::html_page(explanation.chronicle, explanation.subject));
  if (!perfetto_file.empty())
    files.write(perfetto_file, sim::perfetto_trace(explanation.chronicle, explanation.subject));
}

}  // namespace rehearsal::command_line
