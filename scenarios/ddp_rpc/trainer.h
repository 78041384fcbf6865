// A trainer's side of `ddp_rpc`.
#pragma once

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "core/api/remote_module.h"
#include "scenarios/ddp_rpc/hybrid.h"

namespace rehearsal::ddp_rpc {

[[nodiscard]] std::string trainer_name(int64_t number);

// A trainer tells the master at the end.
struct Report {
  std::vector<double> losses;      // of each step
  std::vector<std::string> dense;  // a digest of its replica after each

  friend void describe(Report& report, auto&& fields) { fields(report.losses, report.dense); }
};

// All epochs of one trainer, in step with the others, with which it makes a process group. Called
// by the master, with the table that it has made on the server. Parks.
Report run_trainer(CallContext& call, const RemoteModule<Table>& table, const Settings& settings,
                   int64_t number);

void register_trainer(FunctionRegistry& registry);

}  // namespace rehearsal::ddp_rpc
