#include "scenarios/random_training/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include <chrono>
#include <stdexcept>

#include "core/api/autograd_context.h"
#include "core/base/hash.h"

namespace rehearsal::random_training {
namespace {

using torch::optim::OptimizerParamGroup;

at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed, std::string_view what) {
  return at::randn(sizes, at::detail::createCPUGenerator(mix(seed, hash_text(what))));
}

at::Tensor drawn_weight(int64_t outputs, int64_t seed) {
  return drawn({outputs, kWidth}, static_cast<uint64_t>(seed), "weight") * 0.4;
}
at::Tensor drawn_bias(int64_t outputs, int64_t seed) {
  return drawn({outputs}, static_cast<uint64_t>(seed), "bias") * 0.1;
}

}  // namespace

Block::Block(int64_t seed)
    : weight(register_parameter("weight", drawn_weight(kWidth, seed))),
      bias(register_parameter("bias", drawn_bias(kWidth, seed))) {}

at::Tensor Block::forward(const at::Tensor& input) {
  const at::Tensor output = torch::tanh(torch::nn::functional::linear(input, weight, bias));
  return is_training() ? output : output * 0.5;
}

at::Tensor Block::forward_later(CallContext& call, const at::Tensor& input) {
  call.sleep(std::chrono::microseconds(50));
  return forward(input);
}

std::shared_ptr<Block> make_block(CallContext& call, int64_t seed) {
  call.sleep(std::chrono::microseconds(50));
  return std::make_shared<Block>(seed);
}

torch::nn::Sequential make_sequential(int64_t seed) {
  const torch::nn::Linear linear(kWidth, kWidth);
  const at::NoGradGuard no_grad;
  linear->weight.copy_(drawn_weight(kWidth, seed));
  linear->bias.copy_(drawn_bias(kWidth, seed));
  return torch::nn::Sequential(linear, torch::nn::Sigmoid());
}

Head::Head(int64_t seed)
    : weight(register_parameter("weight", drawn_weight(kOutputs, seed))),
      bias(register_parameter("bias", drawn_bias(kOutputs, seed))) {}

at::Tensor Head::forward(const at::Tensor& input) const {
  return torch::nn::functional::linear(input, weight, bias);
}

at::Tensor drawn_input(uint64_t word) { return drawn({kRows, kWidth}, word, "input"); }
at::Tensor drawn_target(uint64_t word) { return drawn({kRows, kOutputs}, word, "target"); }

at::Tensor head_loss(const Head& head, const Plan& plan, size_t step, size_t trainer) {
  const uint64_t word = mix(plan.steps[step].passes.front().word, trainer);
  const std::vector<at::Tensor> losses =
      losses_of(head.forward(drawn_input(word)), drawn_target(word));
  return losses[0] + losses[1];
}

std::vector<at::Tensor> losses_of(const at::Tensor& output, const at::Tensor& target) {
  std::vector<at::Tensor> losses;
  for (int64_t half = 0; half < 2; ++half)
    losses.push_back((output.narrow(0, half * kRows / 2, kRows / 2) -
                      target.narrow(0, half * kRows / 2, kRows / 2))
                         .pow(2)
                         .mean());
  return losses;
}

at::Tensor loss_there(const at::Tensor& output, const at::Tensor& target, int64_t number,
                      double factor) {
  const std::vector<at::Tensor> losses = losses_of(output, target);
  if (number < 2) return losses.at(static_cast<size_t>(number)) * factor;
  return (losses[0] + losses[1]) * factor;
}

double pass_there(CallContext& call, const at::Tensor& output, const at::Tensor& target,
                  double factor) {
  const std::vector<at::Tensor> losses = losses_of(output, target);
  const at::Tensor loss = losses[0] + losses[1];
  backward(call, {loss * factor});
  return loss.item<double>();
}

bool has_gradients(CallContext& call, const RRef<ServedModule<Block>>& layer) {
  const LeafGradients gradients = get_gradients(call);
  return layer.with_local([&gradients](ServedModule<Block>& served) {
    return gradients.find((*served).weight).defined() && gradients.find((*served).bias).defined();
  });
}

at::Tensor rounds_there() { return at::zeros({1}, at::kLong); }

int64_t count_round(const RRef<at::Tensor>& rounds) {
  return rounds.with_local([](at::Tensor& number) { return number.add_(1).item<int64_t>(); });
}

double own_gradient(CallContext& call, double x) {
  const at::Tensor leaf = at::full({}, x, at::kDouble).requires_grad_();
  const RRef<at::Tensor> square = call.rref(leaf.pow(2));
  square.backward(/*retain_graph=*/true);
  if (square.local_value().item<double>() != x * x)
    throw std::logic_error("a reference refers to another value than the one it was made of");
  return leaf.grad().item<double>();
}

void SignOptions::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue rate;
  archive.read("lr", rate);
  lr = rate.toDouble();
}
void SignOptions::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("lr", c10::IValue(lr));
}

void SignState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue count;
  archive.read("steps", count);
  steps = count.toInt();
}
void SignState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("steps", c10::IValue(steps));
}

at::Tensor SignDescent::step(LossClosure closure) {
  if (closure != nullptr) throw std::invalid_argument("SignDescent takes no closure");
  const at::NoGradGuard no_grad;
  for (OptimizerParamGroup& group : param_groups_)
    for (at::Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (state == nullptr) state = std::make_unique<SignState>();
      const int64_t steps = ++static_cast<SignState&>(*state).steps;
      parameter.add_(parameter.grad().sign(),
                     -group.options().get_lr() / static_cast<double>(steps));
    }
  return {};
}

void SignDescent::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<SignState, SignOptions>(archive, *this);
}
void SignDescent::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<SignState, SignOptions>(archive, *this);
}

void register_layers(FunctionRegistry& registry) {
  register_module<Block>(registry, "Block")
      .constructor<int64_t>()
      .factory<&make_block>("make_block")
      .method("forward_later", &Block::forward_later);
  register_module<torch::nn::Sequential>(registry, "Sequential")
      .factory<&make_sequential>("make_sequential");
  registry.function("loss_there", &loss_there)
      .function("pass_there", &pass_there)
      .function("has_gradients", &has_gradients)
      .function("rounds_there", &rounds_there)
      .function("count_round", &count_round)
      .function("own_gradient", &own_gradient);
  register_optimizer_type<SignDescent, SignOptions>(registry, "SignDescent");
}

}  // namespace rehearsal::random_training
