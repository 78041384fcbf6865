// This binary is the tests, and the tool with the real scenarios that they start.
#include <gtest/gtest.h>

#include <cstdlib>

#include "command_line/command_line.h"
#include "scenarios/barcode/barcode.h"
#include "scenarios/batch_parameter_server/batch_parameter_server.h"
#include "scenarios/batch_rl/batch_rl.h"
#include "scenarios/ddp_rpc/ddp_rpc.h"
#include "scenarios/parameter_server/parameter_server.h"
#include "scenarios/pipeline/pipeline.h"
#include "scenarios/quickstart/quickstart.h"
#include "scenarios/random_model/random_model.h"
#include "scenarios/recovery/recovery.h"
#include "scenarios/rl/rl.h"
#include "scenarios/rnn/rnn.h"
#include "scenarios/rref_fork/rref_fork.h"
#include "scenarios/small_pass/small_pass.h"
#include "scenarios/storm/storm.h"
#include "scenarios/traps/traps.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  if (std::getenv(command_line::kToolVariable) != nullptr) {
    return rehearsal::main(
        argc, argv,
        {quickstart::scenario(), rnn::scenario(), rl::scenario(), barcode::scenario(),
         traps::scenario(), random_model::scenario(), parameter_server::scenario(),
         batch_parameter_server::scenario(), batch_rl::scenario(), pipeline::scenario(),
         recovery::scenario(), ddp_rpc::scenario(), storm_scenario(), rref_fork_scenario(),
         small_pass_scenario()});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
