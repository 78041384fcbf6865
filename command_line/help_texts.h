// What --help says beside the flags.
#pragma once

#include <string>

namespace rehearsal::command_line {

extern const char* const kOverview;
extern const char* const kVerifyHelp;  // what the command does
extern const char* const kExitStatus;
extern const char* const kReplayHelp;  // all of it

// What a command's help ends with, a line each. REQUIRES: it has flags.
[[nodiscard]] const std::string& examples_of(const std::string& command);

}  // namespace rehearsal::command_line
