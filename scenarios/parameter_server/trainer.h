// One trainer: a pass over its own digits, with the model at the server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "scenarios/parameter_server/digits.h"
#include "scenarios/parameter_server/server.h"

namespace rehearsal::parameter_server {

inline constexpr const char* kServerName = "parameter_server";

struct TrainingSettings {
  NetSizes sizes;
  int64_t batch = 1;  // digits in a batch
  double learning_rate = 0;
};

class Trainer {
 public:
  // Asks for the server's model. Parks.
  Trainer(const Worker& worker, const TrainingSettings& settings);

  // One step on these digits: forward at the server, backward in a context of its own, a check that
  // the server has all gradients, a step at the server. Returns the loss. Parks. Throws
  // std::logic_error if a gradient is missing there.
  double train(const Digits& batch);

  // The share of these digits that the model tells right. Parks.
  double accuracy(const Digits& digits) const;

  [[nodiscard]] const RRef<Server>& server() const { return server_; }

  // All steps so far together have taken these from the parameters; double, on the CPU.
  [[nodiscard]] const std::vector<torch::Tensor>& taken() const { return taken_; }
  [[nodiscard]] int64_t steps() const { return steps_; }

 private:
  // On the trainer's first device, if it has any.
  [[nodiscard]] torch::Tensor placed(const torch::Tensor& pictures) const;

  const Worker& worker_;
  TrainingSettings settings_;
  RRef<Server> server_;
  DistributedOptimizer optimizer_;
  std::vector<torch::Tensor> taken_;
  int64_t steps_ = 0;
};

// A trainer tells the others at the end.
struct Share {
  std::string server;  // the name of the value that its reference names
  int64_t steps = 0;
  std::vector<torch::Tensor> taken;

  friend void describe(Share& share, auto&& fields) {
    fields(share.server, share.steps, share.taken);
  }
};

// Whether the parameters have changed by what the steps of all have taken, each once, but for what
// float rounds off.
[[nodiscard]] bool explains(const std::vector<Share>& shares,
                            const std::vector<torch::Tensor>& changes);

}  // namespace rehearsal::parameter_server
