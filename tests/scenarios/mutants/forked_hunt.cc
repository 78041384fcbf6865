#include "tests/scenarios/mutants/forked_hunt.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <variant>

#include "command_line/arguments.h"
#include "command_line/child_process.h"
#include "command_line/ended_process.h"
#include "command_line/hunt_learning.h"
#include "command_line/hunt_tasks.h"
#include "sim/hunt/crash_report.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

void write_output_to(const std::string& file) {
  const int output = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (output < 0 || dup2(output, STDERR_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
    _exit(kWrongUse);
}

// The child of a call here is no child of the tool.
int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("a forked process is lost");
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<ForkedHunt::Found> ForkedHunt::hunt(const std::vector<std::string>& words) const {
  const ParsedCommand parsed = parse_arguments(words, scenarios_, backends_);
  const auto& command = std::get<HuntCommand>(parsed.command);
  const HuntTasks tasks = seed_tasks(command, backends_);
  size_t next = 0;
  return first_failure([&]() -> std::optional<RunSettings> {
    if (tasks.count && next == *tasks.count) return std::nullopt;
    return tasks.settings_of(next++);
  });
}

std::optional<ForkedHunt::Found> ForkedHunt::run(const std::vector<std::string>& words) const {
  const ParsedCommand parsed = parse_arguments(words, scenarios_, backends_);
  std::optional<RunSettings> left = std::get<RunCommand>(parsed.command).settings;
  return first_failure([&] { return std::exchange(left, std::nullopt); });
}

std::optional<ForkedHunt::Found> ForkedHunt::first_failure(const Runs& runs) const {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    write_output_to(folder.file("output"));
    _exit(simulate(runs, folder.file("settings"), folder.file("failure")));
  }
  if (child < 0) throw std::runtime_error("no process can be forked");
  const int status = wait_for(child);
  if (status == kHolds) return std::nullopt;
  const Json settings = Json::parse(read_whole_file(folder.file("settings")));
  Found found{.run = run_arguments(settings_from_json(settings, scenarios_)),
              .failure = read_whole_file(folder.file("failure"))};
  if (found.failure.empty())
    found.failure = text_to_compare(
        failure_of_process(describe_status(status), read_whole_file(folder.file("output"))));
  return found;
}

int ForkedHunt::simulate(const Runs& runs, const std::string& settings_file,
                         const std::string& failure_file) const {
  const sim::CrashReport crash_report(
      {.standard_output = {}, .standard_error = {}, .ends_by_signal = true});
  HuntLearning learning;
  size_t task = 0;
  for (auto asked = runs(); asked; asked = runs(), ++task) {
    RunSettings settings = learning.improve(task, *asked);
    Reporter silent{
        .line = [](const std::string&) {}, .progress = [](const std::string&) {}, .results = {}};
    std::ofstream(settings_file) << to_json(settings).dump();
    const RunOutcome outcome = backends_.simulate(settings, silent);
    learning.learn(task, settings, outcome);
    if (outcome.ok) continue;
    if (!outcome.strategy.empty()) settings.strategy = outcome.strategy;
    std::ofstream(settings_file) << to_json(settings).dump();
    std::ofstream(failure_file) << text_to_compare(outcome.failure.value_or(sim::RunFailure{}));
    return kFailed;
  }
  return kHolds;
}

}  // namespace rehearsal::command_line
