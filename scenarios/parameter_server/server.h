// The server's side: one model for all trainers, made when the first of them asks for it.
#pragma once

#include <optional>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "core/api/rref.h"
#include "scenarios/parameter_server/net.h"

namespace rehearsal::parameter_server {

// Used through an RRef, so its methods run one at a time. Backward passes and the steps of
// optimizers are no methods of it: they come between the calls of others.
class Server {
 public:
  // A net on this device.
  Server(const NetSizes& sizes, const c10::Device& device);

  torch::Tensor forward(const torch::Tensor& pictures, bool training);

  // The gradients of the parameters in the autograd context of the call, in the order of the
  // parameters. Parks for a moment. Throws std::logic_error if one has none.
  std::vector<torch::Tensor> gradients(CallContext& call);

  // A reference to each parameter, for a DistributedOptimizer.
  std::vector<RRef<torch::Tensor>> parameter_rrefs(CallContext& call);

  // Copies of the present parameters, and of what they are now less what they were first.
  std::vector<torch::Tensor> values();
  std::vector<torch::Tensor> changes();

  [[nodiscard]] std::vector<std::string> parameter_names();

 private:
  std::shared_ptr<Net> net_;
  std::vector<torch::Tensor> first_values_;
};

// The server worker's state: where the one model is, once there is one.
struct ServerSlot {
  std::optional<RRef<Server>> server;
};

// The one Server of the worker that serves this, which the first call makes: on its last device.
RRef<Server> get_server(CallContext& call, const NetSizes& sizes);

void register_server(FunctionRegistry& registry);

}  // namespace rehearsal::parameter_server
