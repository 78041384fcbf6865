#include "scenarios/parameter_server/trainer.h"

#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "scenarios/devices.h"

namespace rehearsal::parameter_server {
namespace {

// A step rounds a parameter, which is smaller than 2, by half an ulp at most, and what it takes by
// less.
constexpr double kRoundedByStep = 0x1p-23;

}  // namespace

Trainer::Trainer(const Worker& worker, const TrainingSettings& settings)
    : worker_(worker),
      settings_(settings),
      server_(worker.rpc_sync(kServerName, &get_server, settings.sizes)),
      optimizer_(worker, worker.rpc_sync(server_, &Server::parameter_rrefs),
                 torch::optim::SGDOptions(settings.learning_rate)) {}

torch::Tensor Trainer::placed(const torch::Tensor& pictures) const {
  return pictures.to(device_or_cpu(worker_));
}

double Trainer::train(const Digits& batch) {
  const AutogradContext context = worker_.autograd_context();
  const auto recording = context.record();
  const torch::Tensor output =
      worker_.rpc_sync(server_, &Server::forward, placed(batch.pictures), true);
  const torch::Tensor loss = torch::nll_loss(output, batch.labels.to(output.device()));
  context.backward({loss});
  const std::vector<torch::Tensor> gradients = worker_.rpc_sync(server_, &Server::gradients);
  optimizer_.step(context);
  taken_.resize(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const torch::Tensor step =
        gradients[i].to(torch::kCPU, torch::kDouble) * settings_.learning_rate;
    taken_[i] = taken_[i].defined() ? taken_[i] + step : step;
  }
  ++steps_;
  return loss.item<double>();
}

double Trainer::accuracy(const Digits& digits) const {
  const torch::NoGradGuard no_grad;
  const int64_t count = digits.labels.size(0);
  int64_t right = 0;
  for (int64_t first = 0; first < count; first += settings_.batch) {
    const Digits batch = part_of(digits, first, std::min(settings_.batch, count - first));
    const torch::Tensor output =
        worker_.rpc_sync(server_, &Server::forward, placed(batch.pictures), false);
    right += output.argmax(1).cpu().eq(batch.labels).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

bool explains(const std::vector<Share>& shares, const std::vector<torch::Tensor>& changes) {
  int64_t steps = 0;
  for (const Share& share : shares) steps += share.steps;
  for (size_t i = 0; i < changes.size(); ++i) {
    torch::Tensor left = changes[i].to(torch::kCPU, torch::kDouble);
    for (const Share& share : shares) left = left + share.taken.at(i);
    if (left.abs().max().item<double>() > kRoundedByStep * static_cast<double>(steps)) return false;
  }
  return true;
}

}  // namespace rehearsal::parameter_server
