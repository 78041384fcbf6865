// A run written down to be replayed: the arguments of `run`, the command and the scenario on the
// first line, a flag and its value on each other one. Lines that begin with # are for people.
#pragma once

#include <string>
#include <vector>

#include "scenarios/command_line/outcome.h"

namespace rehearsal::command_line {

// Throws WrongUse if the file cannot be written.
void write_run_file(const std::string& name, const RunSettings& settings, const Failure& failure);

// The words of `run` that it holds, as parse_arguments takes them. Throws WrongUse.
[[nodiscard]] std::vector<std::string> read_run_file(const std::string& name);

}  // namespace rehearsal::command_line
