#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "core/api/remote_module.h"

namespace rehearsal {

// The part that all remote layers share: how their calls are made at present.
class RemoteLayerBase : public torch::nn::Module {
 public:
  // Writes what the layer is, for people.
  void pretty_print(std::ostream& stream) const override;

 protected:
  explicit RemoteLayerBase(WorkerInfo owner) : owner_(std::move(owner)) {}

  // The calls of the CallThrough that is in force; null if there is none and none is needed: the
  // calling execution is recorded in a context, or nothing could be recorded, because gradients are
  // switched off. Else throws RpcError (autograd).
  [[nodiscard]] const Calls* through(const Caller& caller) const;

 private:
  friend class CallThrough;
  const WorkerInfo owner_;
  const Calls* through_ = nullptr;
};

// While it lives, the remote layers in and below a local module call through other calls than their
// own: through a context without a Recording of it, or with another time-out.
//
//   const CallThrough scope(*model, context.with_timeout(5s));
//   context.backward({loss(model->forward(input))});
//
// The context and the layers outlive it. One execution uses a layer at a time: throws
// std::logic_error if a layer is in the scope of another one.
class CallThrough {
 public:
  CallThrough(torch::nn::Module& model, const Calls& calls);
  ~CallThrough();
  CallThrough(const CallThrough&) = delete;
  CallThrough& operator=(const CallThrough&) = delete;

 private:
  const Calls calls_;
  std::vector<RemoteLayerBase*> layers_;
};

// A remote module as a layer of a local one, of a torch::nn::Sequential for example. `forward`
// calls the module where it lives and parks; `train` and `eval` reach it there. It has no
// parameters here: give those of RemoteModule::remote_parameters to the optimizer.
//
//   torch::nn::Sequential model(torch::nn::Linear(4, 8),
//                               std::make_shared<RemoteLayer<Net>>(net));
//   const AutogradContext context = worker.autograd_context();
//   const auto recording = context.record();
//   context.backward({loss(model->forward(input))});
//
// Outside of any context it computes only where gradients are switched off: `forward` throws
// RpcError (autograd) otherwise.
template <ModuleLike T, class Sent = ForwardParameters<ModuleOf<T>>>
class RemoteLayer;

template <ModuleLike T, class... D>
class RemoteLayer<T, Parameters<D...>> final : public RemoteLayerBase {
 public:
  explicit RemoteLayer(RemoteModule<T> module)
      : RemoteLayerBase(module.owner()), module_(std::move(module)) {}

  typename Awaited<ForwardReturned<ModuleOf<T>>>::type forward(D... arguments) {
    const Calls* const calls = through(*module_.module_rref().shared_handle()->caller());
    return (calls != nullptr ? module_.with(*calls) : module_).forward(arguments...);
  }

  // Parks. Throws RpcError.
  void train(bool on = true) override {
    RemoteLayerBase::train(on);
    module_.train(on);
  }

  [[nodiscard]] const RemoteModule<T>& module() const { return module_; }

 private:
  const RemoteModule<T> module_;
};

}  // namespace rehearsal
