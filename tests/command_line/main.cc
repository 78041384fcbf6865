// This binary is the tests, and the tool that they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "tests/command_line/toy.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  namespace toy = rehearsal::command_line::toy;
  if (std::getenv(rehearsal::command_line::kToolVariable) != nullptr) {
    return rehearsal::command_line::main(argc, argv, toy::scenarios(), toy::backends());
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
