#include "scenarios/batch_parameter_server/trainer.h"

#include <torch/optim/sgd.h>

#include "command_line/scenario.h"

namespace rehearsal::batch_parameter_server {

Report run_trainer(CallContext& call, const RRef<Server>& server, const Settings& settings,
                   int64_t number) {
  Report report;
  // Each answer waits for the slowest trainer of its round.
  const Calls unlimited = call.with_timeout(Timeout::never());
  std::vector<at::Tensor> model = unlimited.rpc_sync(server, &Server::get_model);
  for (int64_t round = 0; round < settings.batches; ++round) {
    for (at::Tensor& parameter : model) parameter.set_requires_grad(true);
    const at::Tensor loss = net_loss(model, batch_of(settings, number, round));
    loss.backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : model) gradients.push_back(parameter.grad());
    model = unlimited.rpc_sync(server, &Server::update_and_fetch, number, gradients);
    report.models.push_back(digest_of(model));
    report.last_loss = loss.item<double>();
    call.note("loss", report.last_loss);
  }
  return report;
}

TrainedAlone train_alone(const Settings& settings) {
  TrainedAlone trained{.models = {}, .parameters = first_parameters(settings)};
  torch::optim::SGD optimizer(trained.parameters,
                              torch::optim::SGDOptions(kLearningRate).momentum(kMomentum));
  for (int64_t round = 0; round < settings.batches; ++round) {
    optimizer.zero_grad();
    for (int64_t trainer = 0; trainer < settings.trainers; ++trainer)
      net_loss(trained.parameters, batch_of(settings, trainer, round)).backward();
    for (const at::Tensor& parameter : trained.parameters)
      parameter.mutable_grad().div_(settings.trainers);
    optimizer.step();
    trained.models.push_back(digest_of(trained.parameters));
  }
  return trained;
}

void register_trainer(FunctionRegistry& registry) {
  registry.function("run_trainer", &run_trainer);
}

}  // namespace rehearsal::batch_parameter_server
