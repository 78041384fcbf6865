// This binary is the tests, and the tool with the programs that they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "tests/scenarios/locked/programs.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  if (std::getenv(rehearsal::command_line::kToolVariable) != nullptr)
    return rehearsal::main(argc, argv, rehearsal::locked::scenarios());
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
