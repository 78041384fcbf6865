#pragma once

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/checkpoint_parts.h"
#include "core/api/distributed_optimizer.h"
#include "core/optim/local_optimizer.h"
#include "core/optim/optimizer_pieces.h"

namespace rehearsal {

// A DistributedOptimizer in a cut: the owners' parts, and the options of its groups.
class OptimizerInCheckpoint {
 public:
  // The part of each owner.
  [[nodiscard]] static std::vector<CheckpointPart> parts(const DistributedOptimizer& optimizer,
                                                         const std::string& name);

  // The options of all groups, and the same put back: they go along with the next step.
  [[nodiscard]] static c10::IValue options(const DistributedOptimizer& optimizer);
  static void load_options(const DistributedOptimizer& optimizer, const c10::IValue& options);

  // At an owner. Throw RpcError, of kind bad_arguments between an accumulation and its step. Park.
  static void keep(CallContext& call, const RRef<LocalOptimizer>& optimizer,
                   const CheckpointOrder& order, const std::string& name);
  static std::vector<std::string> load(CallContext& call, const RRef<LocalOptimizer>& optimizer,
                                       const CheckpointOrder& order, const std::string& name);

 private:
  [[nodiscard]] static std::vector<OptimizedTensor> tensors_in(const LocalOptimizer& optimizer);
};

}  // namespace rehearsal
