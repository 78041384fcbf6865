#include "core/optim/optimizer_in_checkpoint.h"

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_grad_scaler.h"
#include "core/checkpoint/checkpoint_desk.h"
#include "core/functions/function_registry.h"
#include "core/optim/optimizer_state.h"
#include "core/optim/parameters_guard.h"

namespace rehearsal {
namespace {

// LibTorch shows the number of steps to those that derive from a scheduler only.
struct SchedulerSteps : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) {
    return scheduler.*(&SchedulerSteps::step_count_);
  }
};

// Only who steps knows: owners may still have what was dropped.
[[noreturn]] void refuse_sum(const Calls& calls, const std::string& name) {
  fail_checkpoint(ErrorKind::bad_arguments,
                  "optimizer '" + name + "' has accumulated gradients: save after its step",
                  calls.caller()->strand()->name());
}

}  // namespace

// ---- where it steps ---------------------------------------------------------------

std::vector<CheckpointPart> OptimizerInCheckpoint::parts(const DistributedOptimizer& optimizer,
                                                         const std::string& name) {
  std::vector<CheckpointPart> parts;
  for (const OwnerShare& share : optimizer.state_->shares)
    parts.push_back(
        {.name = name,
         .needs_names = true,
         .owner = share.owner,
         .keep =
             [share, &state = *optimizer.state_](const Calls& calls, const CheckpointOrder& order,
                                                 const std::string& part) {
               if (state.has_sum()) refuse_sum(calls, part);
               return calls.rpc_async(share.owner, &OptimizerInCheckpoint::keep, share.optimizer,
                                      order, part);
             },
         .load =
             [share](const Calls& calls, const CheckpointOrder& order, const std::string& part) {
               return calls.rpc_async(share.owner, &OptimizerInCheckpoint::load, share.optimizer,
                                      order, part);
             }});
  return parts;
}

c10::IValue OptimizerInCheckpoint::options(const DistributedOptimizer& optimizer) {
  return detail::to_piece(optimizer.state_->options_now());
}

void OptimizerInCheckpoint::load_options(const DistributedOptimizer& optimizer,
                                         const c10::IValue& options) {
  const auto saved = detail::from_piece<std::vector<std::string>>(options);
  auto& groups = optimizer.state_->groups.param_groups();
  if (saved.size() != groups.size())
    fail_checkpoint(ErrorKind::storage, "the optimizer has " + std::to_string(groups.size()) +
                                            " groups of parameters here, and " +
                                            std::to_string(saved.size()) + " were saved");
  for (size_t i = 0; i < saved.size(); ++i)
    groups[i].set_options(optimizer.state_->kind.read(saved[i]));
}

// ---- at an owner ------------------------------------------------------------------

std::vector<OptimizedTensor> OptimizerInCheckpoint::tensors_in(const LocalOptimizer& optimizer) {
  std::vector<OptimizedTensor> tensors;
  for (const LocalOptimizer::Parameter& parameter : optimizer.parameters_)
    tensors.push_back({parameter.tensor, parameter.alias});
  return tensors;
}

void OptimizerInCheckpoint::keep(CallContext& call, const RRef<LocalOptimizer>& optimizer,
                                 const CheckpointOrder& order, const std::string& name) {
  LocalOptimizer& here = optimizer.local_value();
  const ParametersGuard guard(*call.caller());
  const BesideStreams after_all_uses = here.beside_parameters(call);
  keep_optimizer(call, order, name, *here.optimizer_, tensors_in(here));
}

std::vector<std::string> OptimizerInCheckpoint::load(CallContext& call,
                                                     const RRef<LocalOptimizer>& optimizer,
                                                     const CheckpointOrder& order,
                                                     const std::string& name) {
  LocalOptimizer& here = optimizer.local_value();
  const ParametersGuard guard(*call.caller());
  const BesideStreams after_all_uses = here.beside_parameters(call);
  return load_optimizer(call, order, name, *here.optimizer_, tensors_in(here));
}

void register_optimizer_checkpoints(FunctionRegistry& registry) {
  registry.function("rehearsal.optimizer_keep", &OptimizerInCheckpoint::keep)
      .function("rehearsal.optimizer_load", &OptimizerInCheckpoint::load);
}

// ---- what a checkpoint is given -----------------------------------------------------

DistributedCheckpoint& DistributedCheckpoint::optimizer(const std::string& name,
                                                        DistributedOptimizer& optimizer) {
  for (CheckpointPart& part : OptimizerInCheckpoint::parts(optimizer, name)) add(std::move(part));
  return add_value(
      name + ".options", [&optimizer] { return OptimizerInCheckpoint::options(optimizer); },
      [&optimizer](const c10::IValue& saved) {
        OptimizerInCheckpoint::load_options(optimizer, saved);
      });
}

DistributedCheckpoint& DistributedCheckpoint::optimizer(const std::string& name,
                                                        torch::optim::Optimizer& optimizer) {
  return add_local(
      name,
      [&optimizer](const WorkerAccess& here, const CheckpointOrder& order,
                   const std::string& part) {
        keep_optimizer(here, order, part, optimizer, tensors_of(optimizer));
      },
      [&optimizer](const WorkerAccess& here, const CheckpointOrder& order,
                   const std::string& part) {
        return load_optimizer(here, order, part, optimizer, tensors_of(optimizer));
      },
      /*needs_names=*/true);
}

DistributedCheckpoint& DistributedCheckpoint::scheduler(const std::string& name,
                                                        torch::optim::LRScheduler& scheduler) {
  return value(name, SchedulerSteps::of(scheduler));
}

DistributedCheckpoint& DistributedCheckpoint::scaler(const std::string& name,
                                                     DistributedGradScaler& scaler) {
  return add_value(
      name, [&scaler] { return detail::to_piece(scaler.state()); },
      [&scaler](const c10::IValue& saved) {
        scaler.load(detail::from_piece<DistributedGradScaler::State>(saved));
      });
}

}  // namespace rehearsal
