// The files that a command leaves beside what it prints.
#pragma once

#include <string>
#include <vector>

#include "command_line/commands.h"

namespace rehearsal::command_line {

// Throws WrongUse if the file that `flag` names cannot be written: before anything runs. Leaves it
// as it is. Nothing for an empty name.
void check_output_file(const std::string& flag, const std::string& file);

// Writes them, each at once, and remembers which could not be written: that is told at the end,
// behind what the command has to say, so that no result is lost with its file.
class OutputFiles {
 public:
  // Nothing for an empty name.
  void write(const std::string& file, const std::string& text);

  // Of a file that somebody else wrote: "FILE: cannot be written: CAUSE". Empty: it was written.
  void note(const std::string& error);

  // Tells a line of each that could not be written, on standard error. Returns `status`, with which
  // the command ends; kFailed in its place if that is kHolds and there is such a line.
  [[nodiscard]] int end(const Tool& tool, const std::string& command, int status) const;

 private:
  std::vector<std::string> errors_;
};

}  // namespace rehearsal::command_line
