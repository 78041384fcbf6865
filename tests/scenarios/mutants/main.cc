// This binary is the tests, and the tool with the storm that they start.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "scenarios/storm/storm.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  if (std::getenv(command_line::kToolVariable) != nullptr)
    return rehearsal::main(argc, argv, {storm_scenario()});
  at::set_num_threads(1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
