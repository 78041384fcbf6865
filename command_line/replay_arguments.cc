#include "command_line/replay_arguments.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "command_line/help_texts.h"
#include "command_line/replay_command.h"
#include "command_line/run_file.h"
#include "command_line/wrong_use.h"
#include "record/record_file.h"

namespace rehearsal::command_line {
namespace {

const std::string kReplayable = "a file that 'shrink --out' or '--record' wrote";

// One word that is a file: a record or a run that was written down.
ParsedCommand parse_file(const std::string& file, const std::string& trace, bool json,
                         const std::vector<Scenario>& scenarios, const Backends& backends) {
  if (!std::ifstream(file)) throw unreadable(file, "name " + kReplayable);
  try {
    if (record::looks_like_record(file)) {
      ReplayCommand command = read_replay(file, scenarios, backends);
      command.trace_file = trace;
      return {std::move(command), json};
    }
    ParsedCommand parsed = parse_arguments(read_run_file(file), scenarios, backends);
    parsed.json = json;
    if (auto* run = std::get_if<RunCommand>(&parsed.command)) {
      run->settings.trace_file = trace;
      run->settings.exception_traces = true;
    }
    if (auto* one = std::get_if<ExploreCommand>(&parsed.command)) one->settings.trace_file = trace;
    return parsed;
  } catch (const WrongUse& wrong) {
    const std::string text = wrong.what();
    throw WrongUse(text.starts_with(file) ? text : file + ": " + text);
  }
}

}  // namespace

ParsedCommand parse_replay(const std::vector<std::string>& words,
                           const std::vector<Scenario>& scenarios, const Backends& backends) {
  std::vector<std::string> files = words;
  if (std::erase(files, "--help") + std::erase(files, "-h") > 0)
    return {ShowHelp{kReplayHelp}, false};
  const bool json = std::erase(files, "--json") > 0;
  std::string trace;
  if (const auto flag = std::find(files.begin(), files.end(), "--trace"); flag != files.end()) {
    if (std::next(flag) == files.end()) throw WrongUse("--trace: name a file");
    trace = *std::next(flag);
    files.erase(flag, flag + 2);
  }
  if (std::find(files.begin(), files.end(), "--schedule") != files.end()) {
    files = words;
    files.insert(files.begin(), "explore");
    return parse_arguments(files, scenarios, backends);
  }
  if (files.size() != 1 || files.front().starts_with("-"))
    throw WrongUse("type rehearsal replay FILE, " + kReplayable);
  return parse_file(files.front(), trace, json, scenarios, backends);
}

}  // namespace rehearsal::command_line
