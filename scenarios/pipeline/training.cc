#include "scenarios/pipeline/training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/optim/sgd.h>

#include <memory>

#include "core/api/distributed_optimizer.h"
#include "core/api/remote_module.h"
#include "core/base/hash.h"
#include "scenarios/devices.h"
#include "scenarios/models/residual_net.h"

namespace rehearsal::pipeline {
namespace {

ShardSizes sizes_of(const Settings& settings, int64_t stage) {
  return {.channels = settings.channels,
          .blocks = settings.blocks,
          .classes = settings.classes,
          .is_first = stage == 0,
          .is_last = stage == settings.stages - 1,
          .pass_ms = settings.pass_ms};
}

int64_t seed_of(const Settings& settings, int64_t stage) {
  return static_cast<int64_t>(mix(settings.seed, static_cast<uint64_t>(stage)) >> 1);
}

// The micro-batches of one step.
struct Batches {
  std::vector<at::Tensor> pictures;
  std::vector<at::Tensor> targets;
};

// Each in memory of its own: a view that begins elsewhere than at an aligned address may be
// computed in another order.
std::vector<at::Tensor> parts_of(const at::Tensor& rows, int64_t count) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : rows.chunk(count)) parts.push_back(part.clone());
  return parts;
}

// The pictures of a step are drawn together, so they are the same however they are split.
Batches batches_of(const Settings& settings, int64_t step) {
  const uint64_t seed = mix(mix(settings.seed, hash_text("step")), static_cast<uint64_t>(step));
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto drawn = models::draw_pictures(settings.rows * settings.micro_batches, settings.side,
                                           settings.classes, generator);
  return {.pictures = parts_of(drawn.pictures, settings.micro_batches),
          .targets = parts_of(drawn.targets, settings.micro_batches)};
}

// Where a stage lives, as RemoteModule reads it.
std::string place_of(const Settings& settings, int64_t stage) {
  return place_on("worker" + std::to_string(stage % settings.workers), stage / settings.workers,
                  settings.devices);
}

// All of them on the device on which the calling worker computes.
std::vector<at::Tensor> placed(const Worker& worker, std::vector<at::Tensor> tensors) {
  for (at::Tensor& tensor : tensors) tensor = tensor.to(device_or_cpu(worker));
  return tensors;
}

std::vector<at::Tensor> on_host(std::vector<at::Tensor> tensors) {
  for (at::Tensor& tensor : tensors) tensor = tensor.cpu();
  return tensors;
}

// Of the whole step: the mean over its micro-batches.
at::Tensor loss_of(const Settings& settings, const at::Tensor& scores, const at::Tensor& targets) {
  return at::mse_loss(scores, targets) / static_cast<double>(settings.micro_batches);
}

torch::optim::SGDOptions options_of(const Settings& settings) {
  return torch::optim::SGDOptions(settings.learning_rate).momentum(settings.momentum);
}

double sum_of(const std::vector<at::Tensor>& losses) {
  double sum = 0;
  for (const at::Tensor& loss : losses) sum += loss.item<double>();
  return sum;
}

}  // namespace

Trained train_in_stages(const Worker& worker, const Settings& settings, const OnStep& on_step) {
  std::vector<RemoteModule<Shard>> shards;
  std::vector<PipelineStage> stages;
  std::vector<RRef<at::Tensor>> parameters;
  for (int64_t stage = 0; stage < settings.stages; ++stage) {
    shards.emplace_back(worker, place_of(settings, stage), sizes_of(settings, stage),
                        seed_of(settings, stage));
    stages.emplace_back(shards.back());
    for (auto& parameter : shards.back().remote_parameters())
      parameters.push_back(std::move(parameter));
  }
  const Pipeline pipeline(worker, stages, {.schedule = settings.schedule, .reports = true});
  const DistributedOptimizer optimizer(worker, parameters, options_of(settings));
  Trained trained;
  for (int64_t number = 0; number < settings.steps; ++number) {
    const Batches batches = batches_of(settings, number);
    const std::vector<at::Tensor> targets = placed(worker, batches.targets);
    const PipelineStep step = pipeline.step(
        placed(worker, batches.pictures), [&](const at::Tensor& scores, size_t micro_batch) {
          // The last stage's device decides where they arrive.
          const at::Tensor& expected = targets[micro_batch];
          return loss_of(settings, scores.to(expected.device()), expected);
        });
    for (const AutogradContext& context : step.contexts) optimizer.accumulate(context);
    optimizer.step();
    trained.losses.push_back(sum_of(step.losses));
    on_step(number, trained.losses.back(), step);
  }
  for (const RemoteModule<Shard>& shard : shards)
    trained.parameters.push_back(on_host(shard.rpc_sync(&Shard::values)));
  return trained;
}

Trained train_alone(const Settings& settings) {
  std::vector<std::unique_ptr<Shard>> shards;
  std::vector<at::Tensor> parameters;
  for (int64_t stage = 0; stage < settings.stages; ++stage) {
    shards.push_back(std::make_unique<Shard>(sizes_of(settings, stage), seed_of(settings, stage)));
    for (const at::Tensor& parameter : shards.back()->parameters()) parameters.push_back(parameter);
  }
  torch::optim::SGD optimizer(parameters, options_of(settings));
  Trained trained;
  for (int64_t number = 0; number < settings.steps; ++number) {
    const Batches batches = batches_of(settings, number);
    std::vector<at::Tensor> losses;
    optimizer.zero_grad();
    for (size_t i = 0; i < batches.pictures.size(); ++i) {
      at::Tensor x = batches.pictures[i];
      for (const auto& shard : shards) x = shard->compute(x);
      losses.push_back(loss_of(settings, x, batches.targets[i]));
      losses.back().backward();
    }
    optimizer.step();
    trained.losses.push_back(sum_of(losses));
  }
  for (const auto& shard : shards) trained.parameters.push_back(shard->values());
  return trained;
}

}  // namespace rehearsal::pipeline
