#include "core/api/served_module.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "core/checkpoint/kept_tensors.h"

namespace rehearsal {

ServedModuleBase::ServedModuleBase(CallContext& call, c10::Device device,
                                   std::shared_ptr<torch::nn::Module> module)
    : module_(std::move(module)), device_(device) {
  if (module_ == nullptr)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "the factory returned no module",
                    .worker = call.worker_info().name});
  to(call, device);
}

std::vector<RRef<at::Tensor>> ServedModuleBase::remote_parameters(CallContext& call, bool recurse) {
  std::vector<RRef<at::Tensor>> rrefs;
  for (const at::Tensor& tensor : module_->parameters(recurse)) {
    auto known = std::ranges::find_if(
        parameters_, [&](const Parameter& parameter) { return parameter.tensor.is_same(tensor); });
    if (known == parameters_.end())
      known = parameters_.insert(parameters_.end(), {tensor, call.rref(tensor)});
    rrefs.push_back(known->rref);
  }
  return rrefs;
}

std::vector<std::string> ServedModuleBase::names(bool recurse) const {
  return module_->named_parameters(recurse).keys();
}

void ServedModuleBase::train(bool on) { module_->train(on); }

bool ServedModuleBase::is_training() const { return module_->is_training(); }

void ServedModuleBase::keep_for_checkpoint(CallContext& call, const CheckpointOrder& order,
                                           const std::string& name) const {
  keep_tensors(call, order, tensors_of(*module_, name));
}

std::vector<std::string> ServedModuleBase::load_from_checkpoint(CallContext& call,
                                                                const CheckpointOrder& order,
                                                                const std::string& name) const {
  return load_tensors(call, order, tensors_of(*module_, name));
}

void ServedModuleBase::to(CallContext& call, c10::Device device) {
  device_ = device_meant(device, call.caller()->strand()->devices(), call.name());
  module_->to(device_);
}

}  // namespace rehearsal
