// This binary is the tests, and the tool with the real scenarios that they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "scenarios/barcode/barcode.h"
#include "scenarios/quickstart/quickstart.h"
#include "scenarios/rl/rl.h"
#include "scenarios/rnn/rnn.h"
#include "scenarios/rref_fork/rref_fork.h"
#include "scenarios/storm/storm.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  if (std::getenv(command_line::kToolVariable) != nullptr) {
    return rehearsal::main(argc, argv,
                           {quickstart::scenario(), rnn::scenario(), rl::scenario(),
                            barcode::scenario(), storm_scenario(), rref_fork_scenario()});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
