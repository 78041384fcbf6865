// Results as CI systems read them: JUnit's XML, a test case for each scenario.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line/outcome.h"

namespace rehearsal::command_line {

struct JunitCase {
  std::string name;  // of the scenario
  double seconds = 0;
  std::optional<sim::RunFailure> failure;  // the oracle is its type
  std::string replay;                      // the command that repeats it
  std::vector<std::pair<std::string, std::string>> properties;
};

// Throws WrongUse if the file cannot be written: before a run, not after it. No name: nothing.
void check_junit_file(const std::string& file);

// Writes a test suite "rehearsal COMMAND". No name: nothing.
void write_junit(const std::string& file, const std::string& command,
                 const std::vector<JunitCase>& cases);

}  // namespace rehearsal::command_line
