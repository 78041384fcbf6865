// From words to commands: flags, their values, and the one line for what does not fit.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "command_line/commands.h"

namespace rehearsal::command_line {

struct ShowHelp {  // or the version
  std::string text;
};

struct ParsedCommand {
  std::variant<ShowHelp, ListCommand, RunCommand, HuntCommand, MergeCommand, ShrinkCommand,
               ReportCommand, ReplayCommand, CheckCommand, ExploreCommand, VerifyCommand,
               WorkerCommand>
      command;
  bool json = false;
};

[[nodiscard]] bool is_command(const std::string& word);

// `words` are those behind the program's name. Throws WrongUse.
[[nodiscard]] ParsedCommand parse_arguments(const std::vector<std::string>& words,
                                            const std::vector<Scenario>& scenarios,
                                            const Backends& backends);

}  // namespace rehearsal::command_line
