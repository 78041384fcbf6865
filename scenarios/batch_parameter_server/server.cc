#include "scenarios/batch_parameter_server/server.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "scenarios/devices.h"

namespace rehearsal::batch_parameter_server {

std::vector<at::Tensor> first_parameters(const Settings& settings) {
  return draw_parameters(settings.sizes, mix(settings.seed, 0));
}

Batch batch_of(const Settings& settings, int64_t trainer, int64_t round) {
  const auto number = static_cast<uint64_t>(1 + round * settings.trainers + trainer);
  return draw_batch(settings.sizes, settings.rows, mix(settings.seed, number));
}

namespace {

// Leaves again.
std::vector<at::Tensor> on_device(std::vector<at::Tensor> parameters, const c10::Device& device) {
  for (at::Tensor& parameter : parameters)
    parameter = parameter.detach().to(device).set_requires_grad(true);
  return parameters;
}

}  // namespace

Server::Server(CallContext& call, const Settings& settings)
    : parameters_(on_device(first_parameters(settings), device_or_cpu(call))),
      optimizer_(parameters_, torch::optim::SGDOptions(kLearningRate).momentum(kMomentum)),
      round_(call, {.size = static_cast<uint64_t>(settings.trainers), .delay = {}},
             [this](std::vector<Contribution> contributions) {
               return update(std::move(contributions));
             }) {}

std::vector<at::Tensor> Server::get_model() {
  std::vector<at::Tensor> model;
  for (const at::Tensor& parameter : parameters_) model.push_back(parameter.detach().clone());
  return model;
}

Future<std::vector<at::Tensor>> Server::update_and_fetch(int64_t trainer,
                                                         const std::vector<at::Tensor>& gradients) {
  return round_.add({trainer, gradients});
}

// Sums in the order of the trainers, not of their arrival: float addition rounds.
std::vector<std::vector<at::Tensor>> Server::update(std::vector<Contribution> contributions) {
  std::ranges::sort(contributions, {}, &Contribution::trainer);
  const auto count = static_cast<int64_t>(contributions.size());
  for (int64_t i = 0; i < count; ++i)
    if (contributions[static_cast<size_t>(i)].trainer != i)
      throw std::logic_error("trainer " + std::to_string(i) + " is not once in its round");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor sum = contributions.front().gradients.at(i);
    for (size_t j = 1; j < contributions.size(); ++j) sum = sum + contributions[j].gradients.at(i);
    parameters_[i].mutable_grad() = sum / count;
  }
  optimizer_.step();
  ++updates_;
  return {contributions.size(), get_model()};
}

void register_server(FunctionRegistry& registry) {
  registry.type<Server>("Server")
      .constructor<CallContext&, Settings>()
      .method("get_model", &Server::get_model)
      .method("update_and_fetch", &Server::update_and_fetch);
}

}  // namespace rehearsal::batch_parameter_server
