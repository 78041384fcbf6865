// This binary is the tests, and the tool with the real scenarios that they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "scenarios/all_scenarios.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  if (std::getenv(rehearsal::command_line::kToolVariable) != nullptr)
    return rehearsal::main(argc, argv, rehearsal::all_scenarios());
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
