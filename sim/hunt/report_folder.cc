#include "sim/hunt/report_folder.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "record/whole_file.h"
#include "sim/decisions/decision_words.h"
#include "sim/explain/html_page.h"
#include "sim/explain/perfetto_trace.h"
#include "sim/explain/text_diagram.h"
#include "sim/explain/what_decides.h"
#include "sim/hunt/scene_history.h"

namespace rehearsal::sim {
namespace {

constexpr Duration kPairTime = std::chrono::seconds(10);

std::optional<Chronicle> chronicle_of_holding(TrialRuns& runs, const ChosenRun& run) {
  SceneHistory history;
  if (runs.attempt(run, {.history = &history}) || history.empty()) return std::nullopt;
  return history.chronicle();
}

// By the runs which lack one decision and hold.
WhatDecides what_decides(TrialRuns& runs, const ChosenRun& run, const Chronicle& failing) {
  const WallTime searching;
  WhatDecides decides(failing);
  for (size_t i = 0; i < run.decisions.size() && searching.passed() < kPairTime; ++i) {
    ChosenRun without = run;
    without.decisions.erase(without.decisions.begin() + static_cast<ptrdiff_t>(i));
    const auto holding = chronicle_of_holding(runs, without);
    if (!holding) continue;
    const std::string words = in_words(run.decisions[i], failing.workers);
    const Decider decider{.words = words.empty() ? to_string(run.decisions[i]) : words,
                          .fails_with_it = true,
                          .says_where = says_where(run.decisions[i])};
    decides.add(decider);
    decides.compare(failing, *holding, decider);
  }
  return decides;
}

bool write_file(const std::filesystem::path& file, const std::string& text) {
  return record::write_whole_file(file.string(), text).ok();
}

}  // namespace

bool write_report_folder(TrialRuns& runs, const Hunted& hunted) {
  const std::filesystem::path folder(hunted.report);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!write_run((folder / "failure.run").string(), hunted.run, hunted.failure->message))
    return false;
  const std::string command = runs.task().command_of(hunted.run);
  const std::string text = describe(hunted, command) + "\n";
  SpanTaker* const spans = runs.task().spans;
  SceneHistory history(spans);
  std::ofstream lines(folder / "events.txt");
  if (const auto again =
          runs.attempt(hunted.run, {.event_lines = &lines, .history = &history, .trace = spans}))
    history.ended_by(again->thrown);
  const bool has_events = lines.tellp() > 0;
  lines.close();
  if (!has_events) std::filesystem::remove(folder / "events.txt", error);
  if (history.empty()) return write_file(folder / "failure.txt", text) && !lines.fail();
  if (spans != nullptr && !write_file(folder / "failure.spans.json", spans->text())) return false;
  const std::string& message = hunted.failure->message;
  const Chronicle chronicle = history.chronicle();
  Subject subject{.title = runs.task().name + ", seed " + std::to_string(hunted.run.seed.value),
                  .failure = message.substr(0, message.find('\n')),
                  .command = command,
                  .critical = {}};
  if (hunted.run.otherwise == Otherwise::benign)
    what_decides(runs, hunted.run, chronicle).tell(subject);
  return write_file(folder / "failure.html", html_page(chronicle, subject)) &&
         write_file(folder / "failure.trace.json", perfetto_trace(chronicle, subject)) &&
         write_file(folder / "failure.txt", text_diagram(chronicle, subject) + text) &&
         !lines.fail();
}

}  // namespace rehearsal::sim
