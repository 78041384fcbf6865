#include "scenarios/parameter_server/server.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "core/api/autograd_context.h"
#include "scenarios/devices.h"

namespace rehearsal::parameter_server {

Server::Server(const NetSizes& sizes, const c10::Device& device)
    : net_(std::make_shared<Net>(sizes)) {
  net_->to(device);
  first_values_ = values();
}

torch::Tensor Server::forward(const torch::Tensor& pictures, bool training) {
  return net_->forward(pictures.to(net_->parameters().front().device()), training);
}

std::vector<torch::Tensor> Server::gradients(CallContext& call) {
  const LeafGradients found = get_gradients(call);
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : net_->named_parameters()) {
    gradients.push_back(found.find(parameter.value()));
    if (!gradients.back().defined())
      throw std::logic_error("no gradient for " + parameter.key() + " in this context");
  }
  return gradients;
}

std::vector<RRef<torch::Tensor>> Server::parameter_rrefs(CallContext& call) {
  std::vector<RRef<torch::Tensor>> rrefs;
  for (const torch::Tensor& parameter : net_->parameters()) rrefs.push_back(call.rref(parameter));
  return rrefs;
}

std::vector<torch::Tensor> Server::values() {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& parameter : net_->parameters())
    values.push_back(parameter.detach().clone());
  return values;
}

std::vector<torch::Tensor> Server::changes() {
  std::vector<torch::Tensor> changes = values();
  for (size_t i = 0; i < changes.size(); ++i) changes[i] -= first_values_[i];
  return changes;
}

std::vector<std::string> Server::parameter_names() {
  std::vector<std::string> names;
  for (const auto& parameter : net_->named_parameters()) names.push_back(parameter.key());
  return names;
}

// `body` never parks, so the second caller finds what the first has made.
RRef<Server> get_server(CallContext& call, const NetSizes& sizes) {
  return call.with_state<ServerSlot>([&](ServerSlot& slot) {
    const c10::Device device = device_or_cpu(call, call.device_count() - 1);
    if (!slot.server) slot.server = call.rref(Server(sizes, device));
    return *slot.server;
  });
}

void register_server(FunctionRegistry& registry) {
  registry.function("get_server", &get_server);
  registry.type<Server>("Server")
      .method("forward", &Server::forward)
      .method("gradients", &Server::gradients)
      .method("parameter_rrefs", &Server::parameter_rrefs)
      .method("values", &Server::values)
      .method("changes", &Server::changes)
      .method("parameter_names", &Server::parameter_names);
}

}  // namespace rehearsal::parameter_server
