#include "scenarios/all_scenarios.h"

#include "scenarios/barcode/barcode.h"
#include "scenarios/batch_parameter_server/batch_parameter_server.h"
#include "scenarios/batch_rl/batch_rl.h"
#include "scenarios/ddp_rpc/ddp_rpc.h"
#include "scenarios/grammar/grammar.h"
#include "scenarios/parameter_server/parameter_server.h"
#include "scenarios/pipeline/pipeline.h"
#include "scenarios/quickstart/quickstart.h"
#include "scenarios/random_model/random_model.h"
#include "scenarios/random_training/random_training.h"
#include "scenarios/recovery/recovery.h"
#include "scenarios/rl/rl.h"
#include "scenarios/rnn/rnn.h"
#include "scenarios/rref_fork/rref_fork.h"
#include "scenarios/shared_state/shared_state.h"
#include "scenarios/small_pass/small_pass.h"
#include "scenarios/storm/storm.h"
#include "scenarios/traps/traps.h"

namespace rehearsal {

std::vector<Scenario> all_scenarios() {
  return {quickstart::scenario(),
          rnn::scenario(),
          rl::scenario(),
          barcode::scenario(),
          traps::scenario(),
          random_model::scenario(),
          random_training::scenario(),
          parameter_server::scenario(),
          batch_parameter_server::scenario(),
          batch_rl::scenario(),
          pipeline::scenario(),
          recovery::scenario(),
          ddp_rpc::scenario(),
          shared_state::scenario(),
          storm_scenario(),
          grammar_scenario(),
          rref_fork_scenario(),
          small_pass_scenario()};
}

}  // namespace rehearsal
