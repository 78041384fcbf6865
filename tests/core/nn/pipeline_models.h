#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "core/api/pipeline.h"
#include "core/api/worker.h"
#include "tests/core/nn/remote_net.h"

// Stages of pipelines, and programs that have them.
namespace rehearsal::testing {

using std::chrono::milliseconds;

inline constexpr int64_t kStageWidth = 4;

inline constexpr PipelineSchedule kSchedules[] = {
    PipelineSchedule::fill_drain, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble};

// tanh(x w), and the second input beside it if there is one.
struct Block : torch::nn::Module {
  explicit Block(int64_t seed)
      : weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, seed))) {}
  torch::Tensor forward(torch::Tensor x) { return torch::tanh(torch::matmul(x, weight_)); }
  torch::Tensor weight_;
};
struct Joint : torch::nn::Module {
  explicit Joint(int64_t seed)
      : weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, seed))) {}
  torch::Tensor forward(torch::Tensor x, torch::Tensor beside) {
    return torch::matmul(x, weight_) + beside;
  }
  torch::Tensor weight_;
};

inline at::Tensor gradient_of(CallContext& call, const RRef<at::Tensor>& parameter) {
  return get_gradients(call).find(parameter.local_value());
}

// Several of them together take longer than any call may by default.
inline constexpr auto kForwardTime = milliseconds(2000);
inline constexpr auto kBackwardTime = milliseconds(4000);

struct Rest {
  void rest(CallContext& call) { call.sleep(kBackwardTime); }
  void rest_half(CallContext& call) { call.sleep(kBackwardTime / 2); }
};

// Takes time, forward and backward.
struct SlowBlock : torch::nn::Module {
  explicit SlowBlock(int64_t seed)
      : weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, seed))) {}
  torch::Tensor forward(CallContext& call, torch::Tensor x) {
    call.sleep(kForwardTime);
    const torch::Tensor y = torch::matmul(x, weight_);
    if (y.requires_grad())
      y.register_hook([rest = call.rref(Rest())](const torch::Tensor& gradient) {
        rest.rpc_sync(&Rest::rest);
        return gradient;
      });
    return y * 1;
  }
  torch::Tensor weight_;
};

// The same with a backward pass in two halves: one to its input, one to its weight.
struct HalvedBlock : torch::nn::Module {
  explicit HalvedBlock(int64_t seed)
      : weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, seed))) {}
  torch::Tensor forward(CallContext& call, torch::Tensor x) {
    call.sleep(kForwardTime);
    const auto rests = [rest = call.rref(Rest())](const torch::Tensor& gradient) {
      rest.rpc_sync(&Rest::rest_half);
      return gradient;
    };
    const torch::Tensor weight = weight_ * 1;
    const torch::Tensor y = torch::matmul(x, weight);
    if (weight.requires_grad()) weight.register_hook(rests);
    if (y.requires_grad()) y.register_hook(rests);
    return y * 1;
  }
  torch::Tensor weight_;
};

// Breaks at its third pass of a kind.
struct Broken : torch::nn::Module {
  explicit Broken(int where)
      : where_(static_cast<PipelinePass>(where)),
        weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, 1))) {}
  torch::Tensor forward(torch::Tensor x) {
    pass(PipelinePass::forward);
    const auto breaks_at = [this](PipelinePass at) {
      return [this, at](const torch::Tensor& gradient) {
        pass(at);
        return gradient;
      };
    };
    const torch::Tensor weight = weight_ * 1;
    const torch::Tensor y = torch::matmul(x, weight);
    if (weight.requires_grad()) weight.register_hook(breaks_at(PipelinePass::weights));
    if (y.requires_grad()) y.register_hook(breaks_at(PipelinePass::backward));
    return y * 1;
  }
  void pass(PipelinePass at) {
    if (at == where_ && ++count_ == 3) throw std::runtime_error("the third micro-batch breaks it");
  }
  const PipelinePass where_;
  torch::Tensor weight_;
  int count_ = 0;
};

// Takes the first input without its gradient.
struct Cutting : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x, torch::Tensor y) { return x.detach() * y; }
};

inline at::Tensor doubled(const at::Tensor& x) { return x * 2; }

// A block that also sends its input away, for nothing.
struct Chatty : torch::nn::Module {
  explicit Chatty(int64_t seed)
      : weight_(register_parameter("weight", numbers({kStageWidth, kStageWidth}, seed))) {}
  torch::Tensor forward(CallContext& call, torch::Tensor x) {
    (void)call.rpc_sync("leader", &doubled, x);
    return torch::tanh(torch::matmul(x, weight_));
  }
  torch::Tensor weight_;
};

inline FunctionRegistry functions() {
  FunctionRegistry registry;
  register_module<Block, int64_t>(registry, "Block");
  register_module<Joint, int64_t>(registry, "Joint");
  register_module<SlowBlock, int64_t>(registry, "SlowBlock");
  register_module<HalvedBlock, int64_t>(registry, "HalvedBlock");
  register_module<Broken, int>(registry, "Broken");
  register_module<Cutting>(registry, "Cutting").constructor<>();
  register_module<Chatty, int64_t>(registry, "Chatty");
  registry.function("doubled", &doubled);
  registry.type<Rest>("Rest").method("rest", &Rest::rest).method("rest_half", &Rest::rest_half);
  registry.function("gradient_of", &gradient_of);
  return registry;
}

inline Program over_workers(std::function<void(Worker&)> leader, size_t workers) {
  Program program(functions());
  program.worker("leader", std::move(leader));
  for (size_t i = 0; i < workers; ++i) program.worker("stage" + std::to_string(i), serve);
  return program;
}

inline at::Tensor loss_of(const at::Tensor& output, size_t micro_batch) {
  return (output * static_cast<double>(micro_batch + 1)).pow(2).sum();
}

}  // namespace rehearsal::testing
