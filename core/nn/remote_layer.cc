#include "core/api/remote_layer.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace rehearsal {

void RemoteLayerBase::pretty_print(std::ostream& stream) const {
  stream << "RemoteLayer(at '" << owner_.name << "')";
}

const Calls* RemoteLayerBase::through(const Caller& caller) const {
  if (through_ == nullptr && at::GradMode::is_enabled() &&
      caller.strand()->running().context == nullptr)
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = "a remote layer is called outside of any context, and its gradients "
                            "would be lost: call it while a Recording of the context lives "
                            "(context.record()), or under a NoGradGuard",
                    .worker = owner_.name,
                    .function = "forward"});
  return through_;
}

CallThrough::CallThrough(torch::nn::Module& model, const Calls& calls) : calls_(calls) {
  if (auto* const layer = dynamic_cast<RemoteLayerBase*>(&model)) layers_.push_back(layer);
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* const layer = dynamic_cast<RemoteLayerBase*>(module.get())) layers_.push_back(layer);
  for (const RemoteLayerBase* layer : layers_)
    if (layer->through_ != nullptr)
      throw std::logic_error("a remote layer at '" + layer->owner_.name +
                             "' is in the scope of another CallThrough: give each execution a "
                             "model of its own");
  for (RemoteLayerBase* layer : layers_) layer->through_ = &calls_;
}

CallThrough::~CallThrough() {
  for (RemoteLayerBase* layer : layers_) layer->through_ = nullptr;
}

}  // namespace rehearsal
