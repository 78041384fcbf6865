#include "scenarios/random_model/part.h"

#include <algorithm>
#include <stdexcept>

#include "core/api/autograd_context.h"
#include "core/base/hash.h"

namespace rehearsal::random_model {
namespace {

// The value of a reference, at the worker that needs it. `owned`: it is a copy of its own.
Outputs fetched(const RRef<Outputs>& reference, const Input& input, bool& owned) {
  owned = !reference.is_owner();
  if (!owned && !input.apart) return reference.local_value();
  return input.apart ? reference.to_here_async().wait() : reference.to_here();
}

// On which of the worker's devices a node computes, or that it does on the CPU.
c10::Device device_of(const WorkerAccess& worker, const Node& node) {
  const auto places = static_cast<uint64_t>(worker.device_count()) + 1;
  const uint64_t place = mix(node.word, hash_text("device")) % places;
  return place == 0 ? c10::Device(c10::kCPU) : worker.device(static_cast<int>(place) - 1);
}

}  // namespace

Part::Part(CallContext& call, int64_t worker)
    : model_(call.state<Plan>().model), leaves_(leaves_of(*model_, static_cast<uint32_t>(worker))) {
  for (const size_t leaf : leaves_)
    tensors_.push_back(placed(call, model_->nodes[leaf], {}).node.content.clone().requires_grad_());
}

Outputs Part::inputs_of(CallContext& call, const Node& node, const Arguments& arguments,
                        bool& owned) const {
  Outputs inputs;
  size_t values = 0;
  size_t references = 0;
  owned = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Input& input = node.inputs[i];
    bool own = call.caller_info().id != call.id();
    if (input.by_reference)
      inputs.push_back(fetched(arguments.references.at(references++), input, own).at(input.output));
    else
      inputs.push_back(arguments.values.at(values++));
    if (i == 0) owned = own;
  }
  return inputs;
}

Outputs Part::run(CallContext& call, int64_t index, const Arguments& arguments) {
  const auto number = static_cast<size_t>(index);
  const Node& node = model_->nodes.at(number);
  if (is_leaf(node)) {
    const auto leaf = std::find(leaves_.begin(), leaves_.end(), number);
    if (leaf == leaves_.end()) throw std::logic_error(text_of(*model_, number) + " is not here");
    return {tensors_[static_cast<size_t>(leaf - leaves_.begin())]};
  }
  bool owned = false;
  const Outputs inputs = inputs_of(call, node, arguments, owned);
  const Placed here = placed(call, node, inputs);
  return evaluate(*model_, here.node, here.inputs, owned);
}

at::Tensor Part::loss(CallContext& call, int64_t node, const Arguments& arguments) {
  return run(call, node, arguments).front();
}

void Part::start(CallContext& call, int64_t pass, const std::vector<RRef<at::Tensor>>& roots) {
  Outputs tensors;
  for (const RRef<at::Tensor>& root : roots) tensors.push_back(root.to_here());
  backward(call, tensors, options_of(*model_, model_->passes.at(static_cast<size_t>(pass))));
}

Outputs Part::gradients(CallContext& call) {
  const LeafGradients found = get_gradients(call);
  Outputs gradients;
  for (const at::Tensor& tensor : tensors_) {
    const at::Tensor gradient = found.find(tensor);
    gradients.push_back(gradient.defined() ? gradient.detach() : gradient);
  }
  return gradients;
}

at::Tensor Part::penalty(CallContext& call) {
  const LeafGradients found = get_gradients(call);
  Outputs gradients;
  for (const at::Tensor& tensor : tensors_) gradients.push_back(found.find(tensor));
  return penalty_of(gradients);
}

Placed placed(const WorkerAccess& worker, const Node& node, const Outputs& inputs) {
  Placed here{.node = node, .inputs = {}};
  const c10::Device device = device_of(worker, node);
  for (at::Tensor* const constant : {&here.node.content, &here.node.matrix})
    if (constant->defined()) *constant = constant->to(device);
  for (const at::Tensor& input : inputs) here.inputs.push_back(input.to(device));
  return here;
}

Outputs relay(CallContext& call, const std::vector<int64_t>& via, const RRef<Part>& part,
              int64_t node, const Arguments& arguments) {
  if (via.empty()) return part.rpc_sync(&Part::run, node, arguments);
  const WorkerId next{static_cast<uint32_t>(via.front())};
  return call.rpc_sync(next, &relay, std::vector<int64_t>(via.begin() + 1, via.end()), part, node,
                       arguments);
}

BackwardOptions options_of(const Model& model, const Pass& pass) {
  return {.retain_graph = pass.retain_graph,
          .create_graph = pass.create_graph,
          .mode = model.fast ? PassMode::fast : PassMode::smart,
          .deadline = Timeout::never()};
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("relay", &relay);
  registry.type<Part>("Part")
      .constructor<CallContext&, int64_t>()
      .method("run", &Part::run)
      .method("loss", &Part::loss)
      .method("start", &Part::start)
      .method("gradients", &Part::gradients)
      .method("penalty", &Part::penalty);
  return registry;
}

}  // namespace rehearsal::random_model
