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

// A test suite "rehearsal COMMAND".
[[nodiscard]] std::string junit_text(const std::string& command,
                                     const std::vector<JunitCase>& cases);

}  // namespace rehearsal::command_line
