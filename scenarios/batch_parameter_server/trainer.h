// A trainer's side, and the same training in one process.
#pragma once

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "scenarios/batch_parameter_server/server.h"

namespace rehearsal::batch_parameter_server {

// A trainer tells the server at the end.
struct Report {
  std::vector<std::string> models;  // digests of the parameters that each round gave
  double last_loss = 0;

  friend void describe(Report& report, auto&& fields) { fields(report.models, report.last_loss); }
};

// All batches of one trainer: gradients by LibTorch's own backward pass, here, of the model that
// came with the last answer. Called by the server, which it calls. Parks.
Report run_trainer(CallContext& call, const RRef<Server>& server, const Settings& settings,
                   int64_t number);

struct TrainedAlone {
  std::vector<std::string> models;  // as in a report
  std::vector<at::Tensor> parameters;
};

// One after another: the batches of a round, each by LibTorch's own backward pass into `.grad`,
// then a step of their mean.
TrainedAlone train_alone(const Settings& settings);

void register_trainer(FunctionRegistry& registry);

}  // namespace rehearsal::batch_parameter_server
