// The server's side: it collects the gradients of all trainers, steps once, and answers all.
#pragma once

#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/api/batcher.h"
#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "scenarios/batch_parameter_server/residual_net.h"

namespace rehearsal::batch_parameter_server {

inline constexpr double kLearningRate = 1e-3;
inline constexpr double kMomentum = 0.9;

struct Settings {
  NetSizes sizes;
  int64_t trainers = 1;
  int64_t batches = 1;  // of each trainer, which are the server's updates
  int64_t rows = 1;     // pictures in a batch
  uint64_t seed = 0;

  friend void describe(Settings& settings, auto&& fields) {
    fields(settings.sizes, settings.trainers, settings.batches, settings.rows, settings.seed);
  }
};

// All workers draw these alike: the first parameters, and the batch of a trainer in a round.
[[nodiscard]] std::vector<at::Tensor> first_parameters(const Settings& settings);
[[nodiscard]] Batch batch_of(const Settings& settings, int64_t trainer, int64_t round);

// Used through an RRef, so its methods run one at a time, and a round runs alone.
class Server {
 public:
  // Its parameters are on the first device of its worker, if that has any.
  Server(CallContext& call, const Settings& settings);

  // Copies of the present parameters.
  std::vector<at::Tensor> get_model();

  // The gradients of the parameters by one trainer. Answered with the new model when all trainers
  // have come; until then there is only the future: no function runs here, and no stack is held.
  Future<std::vector<at::Tensor>> update_and_fetch(int64_t trainer,
                                                   const std::vector<at::Tensor>& gradients);

  [[nodiscard]] int64_t updates() const { return updates_; }

 private:
  struct Contribution {
    int64_t trainer = 0;
    std::vector<at::Tensor> gradients;
  };

  std::vector<std::vector<at::Tensor>> update(std::vector<Contribution> contributions);

  std::vector<at::Tensor> parameters_;
  torch::optim::SGD optimizer_;
  int64_t updates_ = 0;
  Batcher<Contribution, std::vector<at::Tensor>> round_;
};

void register_server(FunctionRegistry& registry);

}  // namespace rehearsal::batch_parameter_server
