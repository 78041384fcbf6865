// The tool of a user's own scenarios is another program than `rehearsal`, and says so.
#pragma once

#include <string>

namespace rehearsal::command_line {

// The name that a program goes by, from how it was started: "tools/train" is "train".
[[nodiscard]] std::string program_name(const std::string& started_as);

// A text of this tool's for people, in which "rehearsal" names the program wherever a command or
// flag follows it, or a colon at the beginning of a line. A column behind a name at the beginning
// of a line stays one.
[[nodiscard]] std::string spoken_by(const std::string& program, const std::string& text);

}  // namespace rehearsal::command_line
