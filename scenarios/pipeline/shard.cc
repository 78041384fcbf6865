#include "scenarios/pipeline/shard.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <chrono>
#include <string>

#include "core/api/remote_module.h"
#include "scenarios/models/residual_net.h"

namespace rehearsal::pipeline {
namespace {

// A value, so that a hook can rest: it calls it.
class Pause {
 public:
  explicit Pause(int64_t milliseconds) : milliseconds_(milliseconds) {}
  void rest(CallContext& call) const { call.sleep(std::chrono::milliseconds(milliseconds_)); }

 private:
  int64_t milliseconds_;
};

}  // namespace

Shard::Shard(const ShardSizes& sizes, int64_t seed) : sizes_(sizes) {
  const at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  if (sizes.is_first)
    register_parameter("first", models::draw_kernel(models::kColours, sizes.channels, generator));
  for (int64_t block = 0; block < sizes.blocks; ++block)
    for (const char* which : {"in", "out"})
      register_parameter(which + std::to_string(block),
                         models::draw_kernel(sizes.channels, sizes.channels, generator));
  if (sizes.is_last) {
    register_parameter(
        "weight", models::draw_weight({sizes.classes, sizes.channels}, sizes.channels, generator));
    register_parameter("bias", models::draw_weight({sizes.classes}, sizes.channels, generator));
  }
}

at::Tensor Shard::compute(const at::Tensor& input) const { return compute(input, parameters()); }

at::Tensor Shard::forward(CallContext& call, const at::Tensor& input) {
  if (sizes_.pass_ms == 0) return compute(input);
  const Pause pause(sizes_.pass_ms);
  pause.rest(call);
  const auto rests = [remote = call.rref(pause)](const at::Tensor& gradient) {
    remote.rpc_sync(&Pause::rest);
    return gradient;
  };
  std::vector<at::Tensor> all = parameters();
  if (!all.empty()) {
    all.front() = all.front() * 1;
    if (all.front().requires_grad()) all.front().register_hook(rests);
  }
  const at::Tensor output = compute(input, all) * 1;
  if (output.requires_grad()) output.register_hook(rests);
  return output;
}

at::Tensor Shard::compute(const at::Tensor& input, const std::vector<at::Tensor>& all) const {
  size_t next = 0;
  at::Tensor x = input;
  if (sizes_.is_first) x = at::relu(models::convolve(x, all.at(next++)));
  for (int64_t block = 0; block < sizes_.blocks; ++block, next += 2)
    x = models::residual_block(x, all.at(next), all.at(next + 1));
  if (sizes_.is_last) x = models::class_scores(x, all.at(next), all.at(next + 1));
  return x;
}

std::vector<at::Tensor> Shard::values() const {
  std::vector<at::Tensor> values;
  for (const at::Tensor& parameter : parameters()) values.push_back(parameter.detach());
  return values;
}

void register_shard(FunctionRegistry& registry) {
  register_module<Shard, ShardSizes, int64_t>(registry, "Shard").method("values", &Shard::values);
  registry.type<Pause>("Pause").method("rest", &Pause::rest);
}

}  // namespace rehearsal::pipeline
