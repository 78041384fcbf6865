#include "scenarios/batch_parameter_server/residual_net.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

namespace rehearsal::batch_parameter_server {

std::vector<at::Tensor> draw_parameters(const NetSizes& sizes, uint64_t seed) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<at::Tensor> parameters{
      models::draw_kernel(models::kColours, sizes.channels, generator)};
  for (int64_t i = 0; i < 2 * sizes.blocks; ++i)
    parameters.push_back(models::draw_kernel(sizes.channels, sizes.channels, generator));
  parameters.push_back(
      models::draw_weight({sizes.classes, sizes.channels}, sizes.channels, generator));
  parameters.push_back(models::draw_weight({sizes.classes}, sizes.channels, generator));
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  return parameters;
}

at::Tensor net_forward(const std::vector<at::Tensor>& parameters, const at::Tensor& pictures) {
  at::Tensor x = at::relu(models::convolve(pictures, parameters.front()));
  const size_t linear = parameters.size() - 2;
  for (size_t i = 1; i < linear; i += 2)
    x = models::residual_block(x, parameters[i], parameters[i + 1]);
  return models::class_scores(x, parameters[linear], parameters[linear + 1]);
}

Batch draw_batch(const NetSizes& sizes, int64_t rows, uint64_t seed) {
  return models::draw_pictures(rows, sizes.side, sizes.classes,
                               at::make_generator<at::CPUGeneratorImpl>(seed));
}

at::Tensor net_loss(const std::vector<at::Tensor>& parameters, const Batch& batch) {
  const c10::Device device = parameters.front().device();
  return at::mse_loss(net_forward(parameters, batch.pictures.to(device)), batch.targets.to(device));
}

}  // namespace rehearsal::batch_parameter_server
