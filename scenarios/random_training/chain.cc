#include "scenarios/random_training/chain.h"

#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/api/pipeline.h"
#include "core/api/remote_layer.h"
#include "scenarios/random_training/optimizers.h"
#include "scenarios/random_training/wrong_result.h"

namespace rehearsal::random_training {
namespace {

using Parameters = std::vector<RRef<at::Tensor>>;

Parameters parameters_of(const auto& module) {
  return std::visit([](const auto& remote) { return remote.remote_parameters(); }, module);
}

// The calls of one layer in one context.
template <class T>
class LayerCall {
 public:
  LayerCall(const AutogradContext& context, const RemoteModule<T>& module, bool is_recorded)
      : context_(context),
        module_(module),
        bound_(is_recorded ? module : module.with(context)),
        is_recorded_(is_recorded) {}

  at::Tensor operator()(Form form, const at::Tensor& input) const {
    switch (form) {
      case Form::forward:
        return bound_.forward(input);
      case Form::async:
        return bound_.forward_async(input).wait();
      case Form::remote:
        return fetched(bound_.forward_remote(input));
      case Form::layer:
        return through_layer(input);
      default:
        break;
    }
    if constexpr (std::is_same_v<T, Block>)
      return by_method(form, input);
    else
      return bound_.forward(input);
  }

 private:
  at::Tensor by_method(Form form, const at::Tensor& input) const {
    if (form == Form::method) return bound_.rpc_sync(&Block::forward_later, input);
    if (form == Form::method_async) return bound_.rpc_async(&Block::forward_later, input).wait();
    return fetched(bound_.remote(&Block::forward_later, input));
  }

  at::Tensor fetched(const RRef<at::Tensor>& output) const {
    return is_recorded_ ? output.to_here() : context_.to_here(output);
  }

  at::Tensor through_layer(const at::Tensor& input) const {
    const auto layer = std::make_shared<RemoteLayer<T>>(module_);
    expect(layer->module() == module_, "a layer of another module");
    std::ostringstream text;
    layer->pretty_print(text);
    expect(text.str().find(module_.owner().name) != std::string::npos,
           "a layer that does not say where it is");
    torch::nn::Sequential model(torch::nn::Identity(), layer);
    if (is_recorded_) return model->forward(input);
    const CallThrough scope(*model, context_);
    return model->forward(input);
  }

  const AutogradContext& context_;
  const RemoteModule<T>& module_;
  const RemoteModule<T> bound_;
  const bool is_recorded_;
};

std::string name_of(size_t layer) { return "layer" + std::to_string(layer); }

}  // namespace

Chain::Chain(const Worker& worker, const Plan& plan, size_t half) : worker_(worker), plan_(plan) {
  for (const Layer& layer : plan.layers) modules_.push_back(make(layer, half));
  for (size_t i = 0; i < modules_.size(); ++i) look_at(modules_[i], plan.layers[i].owners[half]);
}

Chain::Module Chain::make(const Layer& layer, size_t half) const {
  const std::string& owner = layer.owners[half];
  switch (layer.origin) {
    case Origin::constructor:
      return RemoteModule<Block>(worker_, owner, layer.seed);
    case Origin::factory:
      return RemoteModule<Block>::made_by<&make_block>(worker_, owner + "/cpu", layer.seed);
    case Origin::sequential:
      break;
  }
  return RemoteModule<torch::nn::Sequential>::made_by<&make_sequential>(
      worker_, worker_.worker_info(owner), layer.seed);
}

void Chain::look_at(const Module& module, const std::string& owner) const {
  std::visit(
      [&](const auto& remote) {
        const std::decay_t<decltype(remote)> same(remote.module_rref());
        expect(same.valid() && same == remote, "a module that is not the one it refers to");
        expect(remote.owner().name == owner, "a module at another worker");
        expect(remote.is_training(), "a new module that is not in training");
        remote.to(c10::kCPU);
        expect(remote.device() == c10::Device(c10::kCPU), "a module on another device");
        const std::vector<std::string> names = remote.names();
        const bool is_block = std::is_same_v<decltype(same), const RemoteModule<Block>>;
        const std::vector<std::string> blocks{"weight", "bias"};
        const std::vector<std::string> sequences{"0.weight", "0.bias"};
        expect(names == (is_block ? blocks : sequences), "other names of parameters");
        expect(remote.remote_parameters(/*recurse=*/false).size() == (is_block ? 2u : 0u),
               "another number of own parameters");
      },
      module);
}

Parameters Chain::parameters() const {
  Parameters all;
  for (const Module& module : modules_)
    for (const RRef<at::Tensor>& parameter : parameters_of(module)) all.push_back(parameter);
  return all;
}

DistributedOptimizer Chain::optimizer() const {
  return with_options(
      plan_.optimizer,
      [this]<class Made>(const auto& all, const auto& of_first) -> DistributedOptimizer {
        const auto made = [&](const auto& parameters) {
          if constexpr (std::is_same_v<Made, SignDescent>)
            return make_distributed_optimizer<Made>(worker_, parameters, all);
          else
            return DistributedOptimizer(worker_, parameters, all);
        };
        if (!plan_.is_grouped) return made(parameters());
        std::vector groups{ParameterGroup(parameters_of(modules_.front()), of_first)};
        Parameters rest;
        for (size_t i = 1; i < modules_.size(); ++i)
          for (const RRef<at::Tensor>& parameter : parameters_of(modules_[i]))
            rest.push_back(parameter);
        if (!rest.empty()) groups.emplace_back(rest);
        return made(groups);
      });
}

void Chain::add_to(DistributedCheckpoint& checkpoint) const {
  for (size_t i = 0; i < modules_.size(); ++i)
    std::visit([&](const auto& remote) { checkpoint.module(name_of(i), remote); }, modules_[i]);
}

void Chain::prepare(const Step& step) const {
  for (size_t i = 0; i < modules_.size(); ++i)
    std::visit(
        [evaluates = step.is_evaluating[i]](const auto& remote) {
          evaluates ? remote.eval() : remote.train();
          expect(remote.is_training() != evaluates, "a module that is not in the mode it was put");
        },
        modules_[i]);
}

at::Tensor Chain::output(const AutogradContext& context, const Step& step, const Pass& pass,
                         const at::Tensor& input) const {
  at::Tensor value = input;
  for (size_t place = 0; place < step.chain.size(); ++place)
    value = std::visit(
        [&](const auto& remote) {
          return LayerCall(context, remote, pass.is_recorded)(pass.forms[place], value);
        },
        modules_[step.chain[place]]);
  return value;
}

void Chain::expect_gradients(const AutogradContext& context, const Step& step) const {
  for (size_t i = 0; i < modules_.size(); ++i)
    if (const auto* const block = std::get_if<RemoteModule<Block>>(&modules_[i])) {
      expect(RemoteModule<Block>(block->module_rref()) == *block, "a module that is another one");
      expect(context.rpc_sync(block->owner(), &has_gradients, block->module_rref()) ==
                 std::ranges::count(step.chain, i) > 0,
             name_of(i) + ": gradients, or none, unlike in one process");
    }
}

void Chain::expect_values(const std::vector<at::Tensor>& expected) const {
  const at::NoGradGuard no_grad;
  std::vector<Future<at::Tensor>> asked;
  for (const RRef<at::Tensor>& parameter : parameters()) asked.push_back(parameter.to_here_async());
  expect_same(worker_.when_all(asked).wait(), expected, "the layers' parameters");
}

void Chain::expect_pipeline(const at::Tensor& input) const {
  const at::NoGradGuard no_grad;
  std::vector<PipelineStage> stages;
  at::Tensor value = input;
  for (const Module& module : modules_)
    std::visit(
        [&](const auto& remote) {
          stages.emplace_back(remote);
          value = remote.forward(value);
        },
        module);
  const Pipeline pipeline(worker_, std::move(stages));
  const std::vector<at::Tensor> halves = input.chunk(2);
  const std::vector<at::Tensor> outputs = pipeline.forward(halves);
  expect_same(outputs, value.chunk(2), "the pipeline's outputs");
}

}  // namespace rehearsal::random_training
