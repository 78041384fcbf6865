// The texts of --help beside the flags.
#pragma once

#include <string>

namespace rehearsal::command_line {

extern const char* const kOverview;
extern const char* const kVerifyHelp;  // what the command does
extern const char* const kExitStatus;
extern const char* const kReplayHelp;
extern const char* const kCheckHelp;  // all of it

// The end of a command's help, a line each. REQUIRES: it has flags.
[[nodiscard]] const std::string& examples_of(const std::string& command);

}  // namespace rehearsal::command_line
