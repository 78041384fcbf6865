#pragma once

#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>

#include "core/api/data_parallel.h"
#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "scenarios/random_training/layers.h"
#include "scenarios/random_training/plan.h"

namespace rehearsal::random_training {

// A trainer's replica of the head. All trainers make one, and step it equally often.
class HeadReplica {
 public:
  // Parks until all are there. Throws RpcError.
  HeadReplica(const Worker& worker, const Plan& plan);

  void add_to(DistributedCheckpoint& checkpoint);

  // One of its own steps, with the mean of all replicas' gradients. Parks. Throws RpcError.
  void step(size_t number);

  // In the context of the call: its gradients, which then become the mean. Parks. Throws RpcError.
  void pass(CallContext& call, size_t number) const;

  [[nodiscard]] const Head& head() const { return *head_; }

 private:
  [[nodiscard]] DistributedDataParallel replicas() const;
  [[nodiscard]] at::Tensor loss(size_t number) const;

  const Worker& worker_;
  const Plan& plan_;
  const ProcessGroup group_;
  const std::shared_ptr<Head> head_;
  const DistributedDataParallel replicas_;
  torch::optim::SGD optimizer_;
  const DistributedOptimizer distributed_;  // over the same parameters
  int64_t seen_ = 0;                        // its own steps, with those before a checkpoint
};

// The state of a trainer: where its functions find the replica.
struct HeadDesk {
  const HeadReplica* replica = nullptr;
};

void head_pass(CallContext& call, int64_t number);

}  // namespace rehearsal::random_training
