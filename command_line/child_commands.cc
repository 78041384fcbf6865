// The work of a child process of this binary: simulate for `hunt` and `verify`, or be one real
// worker for `run --net tcp`. And `worker`, which is the same for somebody else's launcher.
#include <charconv>
#include <iostream>
#include <set>
#include <utility>

#include "command_line/child_process.h"
#include "command_line/commands.h"
#include "command_line/printed.h"
#include "command_line/scattered_memory.h"
#include "command_line/terminal.h"
#include "sim/hunt/crash_report.h"

namespace rehearsal::command_line {
namespace {

Reporter silent_reporter() {
  Reporter reporter;
  reporter.line = [](const std::string&) {};
  reporter.progress = [](const std::string&) {};
  return reporter;
}

Reporter forwarding_reporter() {
  Reporter reporter;
  reporter.line = [](const std::string& text) {
    write_report({{"report", "line"}, {"text", text}});
  };
  reporter.progress = [](const std::string& text) {
    write_report({{"report", "progress"}, {"text", text}});
  };
  return reporter;
}

// A worker that cannot start is a failure of the run that its parent reports.
RunOutcome serve(const Tool& tool, const Json& request, Reporter& reporter) {
  try {
    const Json& place = request.at("place");
    return tool.backends.serve(
        settings_from_json(request, tool.scenarios),
        {.rank = place.at("rank").get<uint32_t>(),
         .world_size = place.at("world_size").get<uint32_t>(),
         .rendezvous = place.at("rendezvous").get<std::string>(),
         .spans = place.value("spans", ""),
         .run_id = place.value("run_id", ""),
         .listening = place.contains("listening") ? std::optional(place.at("listening").get<int>())
                                                  : std::nullopt},
        reporter);
  } catch (const std::exception& error) {
    RunOutcome outcome;
    outcome.failure = sim::RunFailure{"error", "", error.what()};
    return outcome;
  }
}

// The value of `--flag value` or `--flag=value`, of arguments that could not be parsed.
std::optional<std::string> given(const std::vector<std::string>& words, const std::string& flag) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

std::optional<uint32_t> number(const std::optional<std::string>& text) {
  uint32_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

}  // namespace

void refuse_worker(const Tool& tool, const std::vector<std::string>& words,
                   const std::string& why) {
  if (words.empty() || words.front() != "worker" || !tool.backends.refuse) return;
  tool.backends.refuse({.rank = number(given(words, "--rank")),
                        .world_size = number(given(words, "--world-size")),
                        .rendezvous = given(words, "--rendezvous"),
                        .run_id = given(words, "--run-id").value_or(""),
                        .auth = given(words, "--auth").value_or("")},
                       why);
}

int serve_requests(const Tool& tool, bool scattered) {
  std::optional<ScatteredMemory> memory;
  if (scattered) memory.emplace();
  // A feature that an earlier run has shown is no news for the parent: it learns from runs in their
  // order, and the runs of one child are in order.
  std::set<std::pair<const Scenario*, uint32_t>> told;
  // The parent reads what is said there, and makes a failure of it.
  const sim::CrashReport crash_report(
      {.standard_output = {}, .standard_error = {}, .ends_by_signal = true});
  while (const auto request = read_request()) {
    Reporter reporter = silent_reporter();
    const RunSettings settings = settings_from_json(*request, tool.scenarios);
    if (memory) memory->scatter(settings.seed.value);
    RunOutcome outcome = tool.backends.simulate(settings, reporter);
    std::erase_if(outcome.features, [&](uint32_t feature) {
      return !told.emplace(settings.scenario, feature).second;
    });
    write_report(to_json(outcome));
  }
  return kHolds;
}

int serve_worker_request(const Tool& tool) {
  const auto request = read_request();
  if (!request) return kFailed;
  Reporter reporter = forwarding_reporter();
  const RunOutcome outcome = serve(tool, *request, reporter);
  write_report({{"report", "outcome"}, {"outcome", to_json(outcome)}});
  return outcome.ok ? kHolds : kFailed;
}

int worker(const Tool& tool, const WorkerCommand& command) {
  ProgressLine progress;
  Reporter reporter;
  reporter.line = [&](const std::string& text) {
    progress.clear();
    (tool.json ? std::cerr : std::cout) << text << std::endl;
  };
  reporter.progress = [&](const std::string& text) { progress.show(text); };
  const Stopwatch stopwatch;
  const RunOutcome outcome = tool.backends.serve(command.settings, command.place, reporter);
  progress.clear();
  if (tool.json) {
    std::cout << printed(report_json(command.settings, outcome, stopwatch.seconds(), ""))
              << std::endl;
  }
  if (outcome.ok) return kHolds;
  std::cerr << to_text(outcome.failure.value_or(sim::RunFailure{})) << std::endl;
  return kFailed;
}

}  // namespace rehearsal::command_line
