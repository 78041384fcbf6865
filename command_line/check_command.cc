#include "command_line/check_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "command_line/help_texts.h"
#include "command_line/printed.h"
#include "command_line/replay_command.h"
#include "command_line/terminal.h"
#include "command_line/wrong_use.h"
#include "core/base/printable.h"
#include "record/record_file.h"
#include "sim/replay/recorded_run.h"
#include "sim/replay/replay.h"

namespace rehearsal::command_line {
namespace {

std::vector<std::string> records_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator at(folder, options, error), end;
       !error && at != end; at.increment(error))
    if (at->is_regular_file(error) && record::looks_like_record(at->path().string()))
      files.push_back(at->path().string());
  if (error) throw WrongUse(folder + ": cannot be read: " + error.message());
  if (files.empty())
    throw WrongUse(folder + ": has no records; name the folder of 'run --net tcp --record FOLDER'");
  std::sort(files.begin(), files.end());
  return files;
}

// The life of a worker that two records claim to be.
bool same_life(const ReplayCommand& a, const ReplayCommand& b) {
  const NodeOptions& one = a.record->header.node;
  const NodeOptions& other = b.record->header.node;
  return one.id == other.id && one.life == other.life;
}

bool same_run(const ReplayCommand& a, const ReplayCommand& b) {
  return a.settings.scenario == b.settings.scenario &&
         a.settings.seed.value == b.settings.seed.value &&
         a.record->header.node.names == b.record->header.node.names;
}

std::string in_words(const sim::RecordedRunReport& report) {
  std::string text = std::to_string(report.lives) + (report.lives == 1 ? " life, " : " lives, ") +
                     std::to_string(report.events) + " events";
  for (const std::string& worker : report.unrecorded)
    text += "; a life of " + worker + " has no record, and what it took part in is not judged";
  return text;
}

Json json_of(const CheckCommand& command, const sim::RecordedRunReport& report) {
  const RunSettings& settings = command.lives.front().settings;
  Json json{{"command", "check"},
            {"scenario", settings.scenario->name},
            {"seed", settings.seed.value},
            {"ok", !report.finding.has_value()},
            {"lives", report.lives},
            {"events", report.events},
            {"unrecorded", report.unrecorded},
            {"finding", nullptr}};
  if (report.finding)
    json["finding"] = {{"oracle", report.finding->oracle},
                       {"object", report.finding->object},
                       {"message", report.finding->message}};
  return json;
}

}  // namespace

ParsedCommand parse_check(const std::vector<std::string>& words,
                          const std::vector<Scenario>& scenarios, const Backends& backends) {
  std::vector<std::string> folders = words;
  if (std::erase(folders, "--help") + std::erase(folders, "-h") > 0)
    return {ShowHelp{kCheckHelp}, false};
  const bool json = std::erase(folders, "--json") > 0;
  if (folders.size() != 1 || folders.front().starts_with("-"))
    throw WrongUse("type rehearsal check FOLDER, a folder of 'run --net tcp --record FOLDER'");
  CheckCommand command;
  for (const std::string& file : records_in(folders.front())) {
    ReplayCommand life = read_replay(file, scenarios, backends);
    if (!command.lives.empty() && !same_run(life, command.lives.front()))
      throw WrongUse(file + ": is of another run than " + command.lives.front().file +
                     "; one run at a time");
    for (const ReplayCommand& other : command.lives)
      if (same_life(life, other))
        throw WrongUse(file + ": is of the same life of a worker as " + other.file +
                       ", in another run; put one of them elsewhere");
    command.lives.push_back(std::move(life));
  }
  return {std::move(command), json};
}

int check(const Tool& tool, const CheckCommand& command) {
  const RunSettings& settings = command.lives.front().settings;
  Reporter silent;
  silent.line = silent.progress = [](const std::string&) {};
  const auto fresh_program = [&] {
    silent.results = {};
    return settings.program(silent);
  };
  std::vector<sim::RecordedLife> lives;
  for (const ReplayCommand& life : command.lives) {
    if (const auto why = sim::refusal(*life.record, fresh_program()))
      throw WrongUse(life.file + ": " + *why);
    lives.push_back({life.file, life.record});
  }
  const sim::RecordedRunReport report =
      sim::judge(lives, fresh_program, {.strict_leaks = !settings.scenario->allows_leaks});
  if (tool.json) std::cout << printed(json_of(command, report)) << std::endl;
  std::ostream& out = tool.json ? std::cerr : std::cout;
  if (report.finding) {
    out << settings.scenario->name << " FAILED: " << report.finding->oracle << ": "
        << printable(report.finding->object) << ": " << printable_lines(report.finding->message)
        << "\n"
        << in_words(report) << std::endl;
    return kFailed;
  }
  if (!tool.json) out << settings.scenario->name << " holds: " << in_words(report) << std::endl;
  return kHolds;
}

}  // namespace rehearsal::command_line
